/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * line_budget.h: limits how many lines about processes and watches that come and go a rule may have
 * in a minute. Each owner may write half of the others' rest, so that a user with a thousand
 * processes that match a rule leaves room for the service that the rule is for. What is left out is
 * counted by kind. Makes no system call; main thread only.
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

/* How many of a rule's lines an owner has written. */
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
 * Whether `owner` (a hash, not 0) may have one more line of `rule` (its name, "" for none) in this
 * minute. Counts the line: as written on true, as left out on false.
 */
bool line_budget_take(struct line_budget *b, const char *rule, uint64_t owner, enum line_kind kind);

/* Whether line_budget_take would return true; counts nothing. */
bool line_budget_has_room(const struct line_budget *b, const char *rule, uint64_t owner);

/* Counts a line as left out because the line that it belongs to was left out. */
void line_budget_leave_out(struct line_budget *b, const char *rule, enum line_kind kind);

/*
 * Call before the other functions, at any time. When the minute is over, passes each rule with
 * lines left out to `call` and begins the next minute. `end`: as if the minute were over.
 */
void line_budget_turn(struct line_budget *b, uint64_t now_ns, bool end,
		      void (*call)(void *context, const struct line_rule *rule), void *context);

/* Returns the nanoseconds until the minute is over. */
uint64_t line_budget_rest_ns(const struct line_budget *b, uint64_t now_ns);

#endif
