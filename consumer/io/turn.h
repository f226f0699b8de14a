/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn.h: the time of one turn of the main loop, which all its parts (drains, scan, queues) share,
 * so that a client of the control socket waits for one part of TURN_NS and not for the sum of all.
 * Main thread only.
 */
#ifndef TROCAR_CONSUMER_IO_TURN_H
#define TROCAR_CONSUMER_IO_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/tools/macro.h"

#define TURN_NS	      (8 * NSEC_PER_MSEC)
#define TURN_LEAST_NS (NSEC_PER_MSEC / 2) /* of a part that comes when the turn's time is over */

/* Starts a turn at now_ns (clock_mono_ns); 0: ends it. Outside of turns each part has TURN_NS. */
void turn_start(uint64_t now_ns);

/*
 * Returns when a part that starts now must stop and let the next turn go on (clock_mono_ns): with
 * the turn, after TURN_LEAST_NS at the earliest, so that each part gets on in every turn.
 */
uint64_t turn_until_ns(void);

/* Returns whether the time of the turn is over. */
bool turn_is_over(void);

#endif
