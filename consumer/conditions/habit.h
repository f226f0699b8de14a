/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * habit.h: bounds how often a threshold begins sessions without a check by the kernel's own
 * figures: HABIT_SESSIONS in HABIT_NS on one cgroup. Further triggers are held back: what happens
 * so often is how the service works. Pure.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_HABIT_H
#define TROCAR_CONSUMER_CONDITIONS_HABIT_H

#include <stdint.h>

#include "shared/tools/macro.h"

#define HABIT_SESSIONS 3
#define HABIT_NS       (3600 * NSEC_PER_SEC)

/* Returns until when the last sessions hold triggers back; 0, or a time that is over: they do not.
 */
uint64_t habit_until_ns(const uint64_t begun_ns[HABIT_SESSIONS]);

/* Notes a session that begins now; begun_ns has the last ones in no order, 0: fewer. */
void habit_note(uint64_t begun_ns[HABIT_SESSIONS], uint64_t now_ns);

#endif
