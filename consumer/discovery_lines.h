/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discovery_lines.h: the budget of the lines about processes and watches (line_budget.h) as the
 * agent holds it, and the line that says what was left out. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_LINES_H
#define TROCAR_CONSUMER_DISCOVERY_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/line_budget.h"

struct agent;
struct owner;

/* What a line is about: its rule (NULL: none), the cgroup, and who runs the process. */
struct line_about {
	const struct rule *rule;
	uint64_t cgroup_id;
	uint32_t uid;		   /* UID_UNKNOWN: not a process, or it is not known */
	const struct owner *owner; /* of the cgroup; NULL: looked up */
};

#define UID_UNKNOWN UINT32_MAX

/* Whether the line may be written now; if not it is counted, and told at the end of the minute. */
bool discovery_line(struct agent *a, const struct line_about *about, enum line_kind kind);

/* Whether it could be; nothing is counted. */
bool discovery_line_has_room(struct agent *a, const struct line_about *about);

/* Counts one as left out, because the line that it belongs to was. */
void discovery_line_left_out(struct agent *a, const struct rule *rule, enum line_kind kind);

/* The minute's timer; 0 or -errno. Without it what is left out is said with the next line. */
int discovery_lines_listen(struct agent *a);

/* Says what was left out so far: before the last line of all. */
void discovery_lines_end(struct agent *a);

#endif
