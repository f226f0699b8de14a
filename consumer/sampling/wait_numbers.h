/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_numbers.h: awaited objects of which little more than a number is known: pipes, futexes,
 * children, timers, sets of semaphores. Pure; used by wait_objects.c.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_WAIT_NUMBERS_H
#define TROCAR_CONSUMER_SAMPLING_WAIT_NUMBERS_H

#include "shared/abi/abi.h"

struct jsonw;

/* Returns the key that unites timers to one object: their clock. */
struct look_on wait_numbers_timer(const struct look_on *on);

/* Keeps the longest remaining time of the running timers. */
void wait_numbers_add(struct look_on *item, const struct look_on *on);

/* Writes the members of `on` other than its kind. */
void wait_numbers_write(const struct look_on *on, struct jsonw *w);

#endif
