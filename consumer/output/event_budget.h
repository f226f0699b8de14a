/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_budget.h: limits the number of lines about processes and watches per minute
 * (line_budget.h), by rule and by owner, and writes the line that reports the number of omitted
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
	struct loop_source *timer; /* owned; NULL: the next line reports omitted lines */
	uint64_t timer_minute;	   /* the timer expires at the end of this minute */
};

/* The subject of a line: its rule (NULL: none), the cgroup, and the user of the process. */
struct event_about {
	const struct rule *rule;
	uint64_t cgroup_id;
	uint32_t uid;		   /* UID_UNKNOWN: not about a process, or the uid is unknown */
	const struct owner *owner; /* owner of the cgroup; NULL: looked up */
};

#define UID_UNKNOWN UINT32_MAX

/* Initialises the budget with at most `per_minute` lines of one rule. The log is borrowed. */
void event_budget_init(struct event_budget *b, const struct event_log *log, uint64_t per_minute);
void event_budget_done(struct event_budget *b);

/* Adds the timer that reports omitted lines at the end of a minute. Returns 0 or -errno. */
int event_budget_listen(struct event_budget *b, struct loop *loop);

/*
 * Returns whether the line may be written now. If not, counts it as omitted, for the report at the
 * end of the minute.
 */
bool event_budget_take(struct event_budget *b, const struct event_about *about,
		       enum line_kind kind);

/* Returns whether event_budget_take would return true; counts nothing. */
bool event_budget_has_room(struct event_budget *b, const struct event_about *about);

/* Counts a line as omitted because the line that it belongs to was omitted. */
void event_budget_leave_out(struct event_budget *b, const struct rule *rule, enum line_kind kind);

/* Reports the lines omitted so far; call before the very last line. */
void event_budget_end(struct event_budget *b);

#endif
