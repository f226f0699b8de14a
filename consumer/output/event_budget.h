/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_budget.h: limits how many lines about processes and watches each rule may have in a minute
 * (line_budget.h), by rule and by owner, and writes the line that reports the number of left-out
 * lines. Main thread only.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_EVENT_BUDGET_H
#define TROCAR_CONSUMER_OUTPUT_EVENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "consumer/output/event_log.h"
#include "consumer/output/line_budget.h"

struct owner;

struct event_budget {
	const struct event_log *log; /* borrowed */
	struct line_budget lines;
	struct loop_source *timer; /* owned; NULL: the next line reports left-out lines */
	uint64_t timer_minute;	   /* the timer expires at the end of this minute */
};

/* What a line is about: its rule (NULL: none), the cgroup, and the user of the process. */
struct event_about {
	const struct rule *rule;
	uint64_t cgroup_id;
	uint32_t uid; /* UID_UNKNOWN: the line is not about a process, or the uid is not known */
	const struct owner *owner; /* owner of the cgroup; NULL: looked up */
};

#define UID_UNKNOWN UINT32_MAX

/* Initialises the budget with at most `per_minute` lines of one rule. The log is borrowed. */
void event_budget_init(struct event_budget *b, const struct event_log *log, uint64_t per_minute);
void event_budget_done(struct event_budget *b);

/* Adds the timer that reports left-out lines at the end of a minute. 0 or -errno. */
int event_budget_listen(struct event_budget *b, struct loop *loop);

/*
 * Whether the line may be written now. If not, counts it as left out; the report at the end of the
 * minute counts it.
 */
bool event_budget_take(struct event_budget *b, const struct event_about *about,
		       enum line_kind kind);

/* Whether event_budget_take would return true; counts nothing. */
bool event_budget_has_room(struct event_budget *b, const struct event_about *about);

/* Counts a line as left out because the line that it belongs to was left out. */
void event_budget_leave_out(struct event_budget *b, const struct rule *rule, enum line_kind kind);

/* Reports the lines left out so far; call before the last line of all. */
void event_budget_end(struct event_budget *b);

#endif
