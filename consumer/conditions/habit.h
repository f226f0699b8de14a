/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * habit.h: bounds how often a threshold begins sessions without a check by the kernel's own
 * figures: HABIT_SESSIONS in HABIT_NS on one cgroup. Further triggers are held back: what happens
 * so often is how the service works. Main thread only.
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
 * Fires the trigger, or holds it back with the reason "habit" where the last sessions require it:
 * begun_ns has their begins (CLOCK_MONOTONIC) in no order, 0: fewer. Notes a session that begins
 * there and in *fired: a session of the same stall, by another rule, does not count as one before.
 */
void habit_fire(uint64_t begun_ns[HABIT_SESSIONS], bool *fired, const struct trigger *trigger,
		struct triggers *triggers);

#endif
