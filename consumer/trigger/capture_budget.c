/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/trigger/capture_budget.h"

#include "shared/tools/array.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define MINUTES 60

static const struct capture_limit limit_rule = { "budget_rule",
						 "the rule's budget of the hour is used up" };
static const struct capture_limit limit_owner = {
	"budget_owner", "this owner's part of the hour's budget is used up"
};
static const struct capture_limit limit_all = { "budget_all", "the hour's budget is used up" };

static struct budget *budget_of_rule(const struct capture_budget *b)
{
	return &b->set->budgets[b->rule - b->set->rules->rules];
}

/* Returns the rest of the rule's budget or the owner's share of it, whichever is more. */
static uint64_t rule_left_ms(const struct capture_budget *b, uint64_t at_ns)
{
	uint64_t max_ms = (uint64_t)b->rule->budget_s * MSEC_PER_SEC;
	uint64_t spent_ms = budget_spent_ms(budget_of_rule(b), at_ns);
	uint64_t part_ms = shares_part_left_ms(b->shares, b->owner, max_ms, spent_ms, at_ns);

	return MAX(max_ms - MIN(max_ms, spent_ms), part_ms);
}

uint64_t capture_budget_left_ms(const struct capture_budget *b, uint64_t at_ns,
				const struct capture_limit **ret_limit)
{
	uint64_t max_ms = (uint64_t)b->set->rules->budget_s * MSEC_PER_SEC, left_ms;
	uint64_t rule_ms = b->rule ? rule_left_ms(b, at_ns) : UINT64_MAX;
	bool of_owner;

	left_ms = shares_left_ms(b->shares, b->owner, max_ms, at_ns, &of_owner);
	*ret_limit = rule_ms <= left_ms ? &limit_rule : of_owner ? &limit_owner : &limit_all;
	return MIN(rule_ms, left_ms);
}

/*
 * Spending is counted by the minute, so more budget becomes available only at the start of a
 * minute.
 */
uint64_t capture_budget_retry_ms(const struct capture_budget *b, uint64_t now_ns)
{
	const uint64_t minute_ns = 60 * NSEC_PER_SEC;
	uint64_t from_ns = now_ns / minute_ns * minute_ns;
	const struct capture_limit *limit;
	/* More budget is left at later times; after an hour all of it is. */
	size_t minutes = LOWER_BOUND(i, 1, MINUTES,
				     capture_budget_left_ms(b, from_ns + i * minute_ns, &limit) <
					     CAPTURE_BUDGET_LEAST_MS);

	return (from_ns + minutes * minute_ns - now_ns) / NSEC_PER_MSEC + 1;
}

void capture_budget_reserve(const struct capture_budget *b, uint64_t start_ns, uint32_t ms)
{
	shares_captured(b->shares, b->owner, start_ns, ms);
	if (b->rule)
		budget_spend(budget_of_rule(b), start_ns, ms);
}

void capture_budget_settle(const struct capture_budget *b, uint64_t start_ns, uint32_t ms,
			   uint64_t stop_ns)
{
	uint32_t used_ms = (uint32_t)((stop_ns - start_ns) / NSEC_PER_MSEC);

	if (used_ms > ms) {
		capture_budget_reserve(b, stop_ns, used_ms - ms);
		return;
	}
	shares_return(b->shares, b->owner, start_ns, ms - used_ms);
	if (b->rule)
		budget_return(budget_of_rule(b), start_ns, ms - used_ms);
}
