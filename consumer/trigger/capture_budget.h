/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture_budget.h: the length of a session as limited by the hourly budgets of captured time: its
 * rule's, all rules', and its owner's part of both. A session reserves its length when it begins,
 * so that concurrent sessions together stay within the budgets. Main thread only.
 */
#ifndef TROCAR_CONSUMER_TRIGGER_CAPTURE_BUDGET_H
#define TROCAR_CONSUMER_TRIGGER_CAPTURE_BUDGET_H

#include <stdint.h>

#include "consumer/rules/ruleset.h"
#include "consumer/rules/shares.h"

/* A shorter session does not begin: the least during_ms of a rule. */
#define CAPTURE_BUDGET_LEAST_MS 100

/* The owner and the rule of a capture. All borrowed. */
struct capture_budget {
	const struct ruleset *set; /* the active one */
	struct shares *shares;
	const struct rule *rule; /* of that set, or NULL */
	struct owner *owner;	 /* or NULL */
};

/* The budget that leaves least. */
struct capture_limit {
	const char *held;   /* `reason` of trigger.held */
	const char *during; /* `during_reason` of session.start */
};

/*
 * Returns the allowed length of a session that begins at `at_ns`, now or later, and sets *ret_limit
 * to the tightest budget.
 */
uint64_t capture_budget_left_ms(const struct capture_budget *b, uint64_t at_ns,
				const struct capture_limit **ret_limit);

/* Returns the number of milliseconds until a session of CAPTURE_BUDGET_LEAST_MS may begin. */
uint64_t capture_budget_retry_ms(const struct capture_budget *b, uint64_t now_ns);

/* Counts a session that begins at `start_ns` and may last `ms`. */
void capture_budget_reserve(const struct capture_budget *b, uint64_t start_ns, uint32_t ms);

/* Corrects the count of an ended session, for which `ms` were reserved. */
void capture_budget_settle(const struct capture_budget *b, uint64_t start_ns, uint32_t ms,
			   uint64_t stop_ns);

#endif
