/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn.h: the time slice of one iteration of the main loop, which all its parts (drains, scan,
 * queues) share, so that a client of the control socket waits for one slice of TURN_NS and not for
 * the sum of all parts. Main thread only.
 */
#ifndef TROCAR_CONSUMER_IO_TURN_H
#define TROCAR_CONSUMER_IO_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/tools/macro.h"

#define TURN_NS	      (8 * NSEC_PER_MSEC)
#define TURN_LEAST_NS (NSEC_PER_MSEC / 2) /* for a part that starts after the slice is over */

/*
 * Starts a time slice at now_ns (clock_mono_ns); 0: ends it. Without a slice each part has TURN_NS.
 */
void turn_start(uint64_t now_ns);

/*
 * Returns the time (clock_mono_ns) at which a part that starts now must stop: at the end of the
 * slice, but at least TURN_LEAST_NS from now, so that each part makes progress in every iteration.
 */
uint64_t turn_until_ns(void);

/* Returns whether the time slice is over. */
bool turn_is_over(void);

#endif
