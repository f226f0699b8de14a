/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/rules/budget.h"

#include <string.h>

#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static uint64_t minute_of(uint64_t ns)
{
	return ns / NSEC_PER_SEC / 60;
}

/* Advances the ring to the minute of now_ns and forgets minutes older than an hour. */
static void turn_budget(struct budget *b, uint64_t now_ns)
{
	uint64_t now = minute_of(now_ns);

	if (now - b->at_minute >= 60)
		memset(b->minute, 0, sizeof(b->minute));
	else
		while (b->at_minute < now)
			b->minute[++b->at_minute % 60] = 0;
	b->at_minute = now;
}

uint64_t budget_spent_ms(const struct budget *b, uint64_t at_ns)
{
	uint64_t at = minute_of(at_ns), sum = 0;

	/* The minutes in the ring that still count at that time. */
	for (uint64_t i = 0; i < ARRAY_SIZE(b->minute) && i <= b->at_minute; i++)
		if (at < b->at_minute - i + 60)
			sum += b->minute[(b->at_minute - i) % 60];
	return sum;
}

void budget_spend(struct budget *b, uint64_t now_ns, uint32_t ms)
{
	turn_budget(b, now_ns);
	b->minute[b->at_minute % 60] += ms;
}

void budget_return(struct budget *b, uint64_t spent_ns, uint32_t ms)
{
	uint64_t spent = minute_of(spent_ns);

	if (b->at_minute - spent < 60)
		b->minute[spent % 60] -= MIN(ms, b->minute[spent % 60]);
}
