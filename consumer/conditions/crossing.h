/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crossing.h: decides whether a reading of a pressure file crosses a threshold, and then fires a
 * trigger for each rule of the watch that has this threshold. Main thread only.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_CROSSING_H
#define TROCAR_CONSUMER_CONDITIONS_CROSSING_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/conditions/threshold.h"
#include "consumer/trigger/trigger.h"

/* How a crossing was noticed. */
enum crossing_by {
	CROSSING_BY_TRIGGER, /* the kernel's trigger fired */
	CROSSING_BY_SCAN,
	/*
	 * The totals of a reading show it: at a drain, or after a notice that arrived too early;
	 * the kernel's trigger has not fired for it.
	 */
	CROSSING_BY_READING,
};

struct crossings {
	struct triggers *triggers; /* borrowed */
	uint64_t noticed;	   /* crossings for which the kernel's trigger fired */
	uint64_t missed;	   /* crossings found by a reading and missed by the trigger */
};

/*
 * Returns the point since which the total has grown by the threshold's stall; NULL if it has not.
 */
const struct psi_point *crossing_compare(const struct threshold *t, const struct psi_history *h,
					 const struct psi_point *now);

/*
 * Returns whether the stall since the last reading must have crossed the threshold: at least one of
 * the windows that cover this time had the mean stall or more.
 */
bool crossing_is_certain(const struct threshold *t, const struct psi_point *last,
			 const struct psi_point *now);

/* Returns whether a crossing at `now_ns` is the same that crossing_act has just handled. */
bool crossing_is_repeat(const struct threshold *t, uint64_t now_ns);

/* Acts on a crossed threshold: fires a trigger for each rule that has it. */
void crossing_act(struct crossings *c, struct threshold *t, const struct psi_point *from,
		  const struct psi_point *now, enum crossing_by by);

#endif
