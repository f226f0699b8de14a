/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/rules/budget.h"

#include <string.h>

#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Advances the ring to the minute of now_ns and forgets what is older than an hour. */
static void turn_budget(struct budget *b, uint64_t now_ns)
{
	uint64_t now = now_ns / NSEC_PER_SEC / 60;

	if (now - b->at_minute >= 60)
		memset(b->minute, 0, sizeof(b->minute));
	else
		while (b->at_minute < now)
			b->minute[++b->at_minute % 60] = 0;
	b->at_minute = now;
}

uint64_t budget_spent_ms(struct budget *b, uint64_t now_ns)
{
	uint64_t sum = 0;

	turn_budget(b, now_ns);
	for (size_t i = 0; i < ARRAY_SIZE(b->minute); i++)
		sum += b->minute[i];
	return sum;
}

void budget_spend(struct budget *b, uint64_t now_ns, uint32_t ms)
{
	turn_budget(b, now_ns);
	b->minute[b->at_minute % 60] += ms;
}
