/* SPDX-License-Identifier: BSD-2-Clause */
/* habit_fire.h: fires triggers of thresholds that are bounded by habit.h. Main thread only. */
#ifndef TROCAR_CONSUMER_CONDITIONS_HABIT_FIRE_H
#define TROCAR_CONSUMER_CONDITIONS_HABIT_FIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/conditions/habit.h"

struct trigger;
struct triggers;

/*
 * Fires the trigger, or holds it back with the reason "habit" where the last sessions of begun_ns
 * require it. Notes a session that begins there and in *fired: a session of the same stall, by
 * another rule, does not count as one before.
 */
void habit_fire(uint64_t begun_ns[HABIT_SESSIONS], bool *fired, const struct trigger *trigger,
		struct triggers *triggers);

#endif
