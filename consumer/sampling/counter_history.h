/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counter_history.h: keeps a slot's counters at the last drains, so that a session can distinguish
 * the losses in its pre-roll from earlier ones. One per watch. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_COUNTER_HISTORY_H
#define TROCAR_CONSUMER_SAMPLING_COUNTER_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/tools/macro.h"

/* The points reach back further than the longest pre-roll, 30 s. */
#define COUNTER_POINTS	 10
#define COUNTER_APART_NS (4 * NSEC_PER_SEC)

struct counter_point {
	uint64_t time_ns;	  /* before the counters were read */
	struct slot_counters sum; /* over all CPUs */
};

/* A ring of points; all zero: empty. */
struct counter_history {
	struct counter_point points[COUNTER_POINTS];
	uint32_t count, newest;
};

/* Returns whether the newest point is old enough for another one. */
bool counter_history_wants(const struct counter_history *h, uint64_t now_ns);

/* Adds a point, which may replace the oldest. */
void counter_history_add(struct counter_history *h, uint64_t time_ns,
			 const struct slot_counters *sum);

/* Returns the newest point at or before `time_ns`, else the oldest; NULL if there is none. */
const struct counter_point *counter_history_until(const struct counter_history *h,
						  uint64_t time_ns);

/* Returns the oldest point at or after `time_ns`; NULL if there is none. */
const struct counter_point *counter_history_from(const struct counter_history *h, uint64_t time_ns);

#endif
