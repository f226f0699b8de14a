/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * line_budget.h: how many lines of discovery (processes and watches that come and go) a rule may
 * have in a minute. Whose lines they are is told apart: an owner may write half of what the others
 * have left, so that one who starts a thousand processes under a rule's name leaves room for the
 * service that the rule means. What is left out is counted by kind. Pure; main thread only.
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
	LINE_UNWIND,
	LINE_WATCH_START,
	LINE_WATCH_STOP,
	LINE_KIND_COUNT_,
};

/* "process.match", ...: the type of the line. */
const char *line_budget_kind_name(enum line_kind kind);

/* Who wrote how many of a rule's lines. */
struct line_owner {
	uint64_t owner, written;
};

/* What became of one rule's lines in this minute. */
struct line_rule {
	char name[RULE_NAME_BYTES]; /* "" for lines without a rule */
	uint64_t written;
	uint64_t left_out[LINE_KIND_COUNT_];
	struct line_owner *owners; /* owned; each has a line at least, so there are few */
	size_t n_owners;
};

struct line_budget {
	uint64_t max;	    /* lines of a rule in a minute */
	uint64_t minute;    /* of CLOCK_MONOTONIC, that `rules` speaks of */
	struct idmap rules; /* hash of the name -> struct line_rule *, owned */
	uint64_t left_out;  /* ever */
};

void line_budget_init(struct line_budget *b, uint64_t max);
void line_budget_done(struct line_budget *b);

/*
 * Whether `owner` (a hash, not 0) may have one more line of `rule` (its name, "" for none) in this
 * minute. True: it is counted as written. False: as left out.
 */
bool line_budget_take(struct line_budget *b, const char *rule, uint64_t owner, enum line_kind kind);

/* The same question, and nothing is counted. */
bool line_budget_has_room(const struct line_budget *b, const char *rule, uint64_t owner);

/* Counts a line that is not written because the one that it belongs to was not. */
void line_budget_leave_out(struct line_budget *b, const char *rule, enum line_kind kind);

/*
 * Before the others, at any time: when the minute is over, hands each rule that had lines left out
 * to `call` and begins the next. `end`: as if it were over.
 */
void line_budget_turn(struct line_budget *b, uint64_t now_ns, bool end,
		      void (*call)(void *context, const struct line_rule *rule), void *context);

/* Nanoseconds until the minute is over. */
uint64_t line_budget_rest_ns(const struct line_budget *b, uint64_t now_ns);

#endif
