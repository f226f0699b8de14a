/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture_budget.h: how long a session may last by the budgets of captured time in an hour: its
 * rule's, all rules', and its owner's part of both. A session reserves its length when it begins,
 * so that sessions which run at once keep the budgets together. Main thread only.
 */
#ifndef TROCAR_CONSUMER_TRIGGER_CAPTURE_BUDGET_H
#define TROCAR_CONSUMER_TRIGGER_CAPTURE_BUDGET_H

#include <stdint.h>

#include "consumer/rules/ruleset.h"
#include "consumer/rules/shares.h"

/* A session shorter than this is not begun: the least during_ms of a rule. */
#define CAPTURE_BUDGET_LEAST_MS 100

/* The owner and the rule of a capture. All borrowed. */
struct capture_budget {
	const struct ruleset *set; /* in force */
	struct shares *shares;
	const struct rule *rule; /* of that set, or NULL */
	struct owner *owner;	 /* or NULL */
};

/* Which budget leaves least. */
struct capture_limit {
	const char *held;   /* `reason` of trigger.held */
	const char *during; /* `during_reason` of session.start */
};

/* Returns how long a session that begins at `at_ns`, now or later, may last. */
uint64_t capture_budget_left_ms(const struct capture_budget *b, uint64_t at_ns,
				const struct capture_limit **ret_limit);

/* Returns in how many milliseconds a session of CAPTURE_BUDGET_LEAST_MS may begin. */
uint64_t capture_budget_retry_ms(const struct capture_budget *b, uint64_t now_ns);

/* Counts a session that begins at `start_ns` and may last `ms`. */
void capture_budget_reserve(const struct capture_budget *b, uint64_t start_ns, uint32_t ms);

/* Corrects the count of a session, for which `ms` were reserved, when it has ended. */
void capture_budget_settle(const struct capture_budget *b, uint64_t start_ns, uint32_t ms,
			   uint64_t stop_ns);

#endif
