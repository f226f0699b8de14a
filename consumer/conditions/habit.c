/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/habit.h"

uint64_t habit_until_ns(const uint64_t begun_ns[HABIT_SESSIONS])
{
	uint64_t oldest_ns = begun_ns[0];

	for (int i = 1; i < HABIT_SESSIONS; i++)
		oldest_ns = MIN(oldest_ns, begun_ns[i]);
	return oldest_ns ? oldest_ns + HABIT_NS : 0;
}

void habit_note(uint64_t begun_ns[HABIT_SESSIONS], uint64_t now_ns)
{
	uint64_t *oldest = &begun_ns[0];

	for (int i = 1; i < HABIT_SESSIONS; i++)
		if (begun_ns[i] < *oldest)
			oldest = &begun_ns[i];
	*oldest = now_ns;
}
