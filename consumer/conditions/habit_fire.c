/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/habit_fire.h"

#include "consumer/trigger/trigger.h"
#include "shared/tools/clock.h"

void habit_fire(uint64_t begun_ns[HABIT_SESSIONS], bool *fired, const struct trigger *trigger,
		struct triggers *triggers)
{
	uint64_t now_ns = clock_mono_ns(), until_ns = habit_until_ns(begun_ns);
	struct trigger_held held = { .reason = "habit" };
	struct session *session;

	if (!*fired && until_ns > now_ns) {
		held.retry_ms = (until_ns - now_ns) / NSEC_PER_MSEC + 1;
		trigger_hold(triggers, trigger, &held);
		return;
	}
	if (trigger_fire(triggers, trigger, &session, &held) < 0)
		return;
	habit_note(begun_ns, now_ns);
	*fired = true;
}
