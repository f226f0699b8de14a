/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crossing.h: when a reading of a pressure file crosses a threshold, and what follows: each rule of
 * the watch that asks for it triggers. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PRESSURE_CROSSING_H
#define TROCAR_CONSUMER_PRESSURE_CROSSING_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/pressure/threshold.h"
#include "consumer/watch/trigger.h"

/* How a crossing was noticed. */
enum crossing_by {
	CROSSING_BY_TRIGGER, /* the kernel said so */
	CROSSING_BY_SCAN,
	CROSSING_BY_READING, /* the totals say so, read at a drain or after a notice that came too
				early, and the kernel has not */
};

struct crossings {
	struct triggers *triggers; /* borrowed */
	uint64_t noticed;	   /* crossings that the kernel told */
	uint64_t missed;	   /* crossings that a reading found and the kernel had not told */
};

/* The point from which growth to now is at least the threshold's; NULL when it is not. */
const struct psi_point *crossing_compare(const struct threshold *t, const struct psi_history *h,
					 const struct psi_point *now);

/*
 * Whether the stall since the last reading must have crossed the threshold: of the windows that
 * cover this time, one had at least the mean.
 */
bool crossing_is_certain(const struct threshold *t, const struct psi_point *last,
			 const struct psi_point *now);

/* Whether a crossing at `now_ns` is the one that was acted on just before. */
bool crossing_is_repeat(const struct threshold *t, uint64_t now_ns);

/* Acts on a crossed threshold: a trigger for each rule that asks for it. */
void crossing_act(struct crossings *c, struct threshold *t, const struct psi_point *from,
		  const struct psi_point *now, enum crossing_by by);

#endif
