/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * habit.h: limits the number of sessions that a threshold begins without a check by the kernel's
 * own figures: HABIT_SESSIONS in HABIT_NS on one cgroup. Further triggers are held back, because
 * anything this frequent is the normal behaviour of the service. Main thread only.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_HABIT_H
#define TROCAR_CONSUMER_CONDITIONS_HABIT_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/tools/macro.h"

#define HABIT_SESSIONS 3
#define HABIT_NS       (3600 * NSEC_PER_SEC)

struct trigger;
struct triggers;

/*
 * Fires the trigger, or holds it back with the reason "habit" if the last sessions require it.
 * begun_ns has the begin of the last sessions (CLOCK_MONOTONIC), unordered; 0: fewer sessions.
 * Records a new session in begun_ns and in *fired: a second session of the same stall, by another
 * rule, does not count as an earlier one.
 */
void habit_fire(uint64_t begun_ns[HABIT_SESSIONS], bool *fired, const struct trigger *trigger,
		struct triggers *triggers);

#endif
