/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/habit.h"

#include "consumer/trigger/trigger.h"
#include "shared/tools/clock.h"

static uint64_t *oldest_begin(uint64_t begun_ns[HABIT_SESSIONS])
{
	uint64_t *oldest = &begun_ns[0];

	for (int i = 1; i < HABIT_SESSIONS; i++)
		if (begun_ns[i] < *oldest)
			oldest = &begun_ns[i];
	return oldest;
}

void habit_fire(uint64_t begun_ns[HABIT_SESSIONS], bool *fired, const struct trigger *trigger,
		struct triggers *triggers)
{
	uint64_t now_ns = clock_mono_ns(), *oldest_ns = oldest_begin(begun_ns);
	uint64_t until_ns = *oldest_ns ? *oldest_ns + HABIT_NS : 0;
	struct trigger_held held = { .reason = "habit" };
	struct session *session;

	if (!*fired && until_ns > now_ns) {
		held.retry_ms = (until_ns - now_ns) / NSEC_PER_MSEC + 1;
		trigger_hold(triggers, trigger, &held);
		return;
	}
	if (trigger_fire(triggers, trigger, &session, &held) < 0)
		return;
	*oldest_ns = now_ns;
	*fired = true;
}
