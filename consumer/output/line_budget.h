/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * line_budget.h: limits the lines per minute of one rule about short-lived processes and watches.
 * Each owner may write half of the lines that the others left, so that a user with a thousand
 * matching processes leaves lines for the service that the rule is for. Omitted lines are counted
 * by kind. Makes no system call; main thread only.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_LINE_BUDGET_H
#define TROCAR_CONSUMER_OUTPUT_LINE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/rules/rules.h"
#include "shared/tools/idmap.h"

enum line_kind {
	LINE_MATCH,
	LINE_EXIT,
	LINE_LEFT,
	LINE_UNWIND,
	LINE_WATCH_START,
	LINE_WATCH_STOP,
	LINE_OOM,
	LINE_KIND_COUNT_,
};

/* Returns the type of the line: "process.match", ... */
const char *line_budget_kind_name(enum line_kind kind);

/* The number of a rule's lines that an owner has written. */
struct line_owner {
	uint64_t owner, written;
};

/* The counts of one rule in this minute. */
struct line_rule {
	char name[RULE_NAME_BYTES]; /* "" for lines without a rule */
	uint64_t written;
	uint64_t left_out[LINE_KIND_COUNT_];
	struct line_owner *owners; /* owned; each has written a line, so there are few */
	size_t n_owners;
};

struct line_budget {
	uint64_t max;	    /* limit for one rule in a minute */
	uint64_t minute;    /* the minute of CLOCK_MONOTONIC that `rules` counts */
	struct idmap rules; /* hash of the name -> struct line_rule *, owned */
	uint64_t left_out;  /* since the start */
};

void line_budget_init(struct line_budget *b, uint64_t max);
void line_budget_done(struct line_budget *b);

/*
 * Returns whether `owner` (a hash, not 0) may have one more line of `rule` (its name, "" for none)
 * in this minute. Counts the line as written if true, as omitted if false.
 */
bool line_budget_take(struct line_budget *b, const char *rule, uint64_t owner, enum line_kind kind);

/* Returns whether line_budget_take would return true; counts nothing. */
bool line_budget_has_room(const struct line_budget *b, const char *rule, uint64_t owner);

/* Counts a line as omitted because the line that it belongs to was omitted. */
void line_budget_leave_out(struct line_budget *b, const char *rule, enum line_kind kind);

/*
 * Call before the other functions, at any time. When the minute is over, passes each rule with
 * omitted lines to `call` and begins the next minute. `end`: treat the minute as over.
 */
void line_budget_turn(struct line_budget *b, uint64_t now_ns, bool end,
		      void (*call)(void *context, const struct line_rule *rule), void *context);

/* Returns the nanoseconds to the end of the minute. */
uint64_t line_budget_rest_ns(const struct line_budget *b, uint64_t now_ns);

#endif
