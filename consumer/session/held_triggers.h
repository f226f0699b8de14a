/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * held_triggers.h: sums triggers that began no session, by cause: their number, the largest stall,
 * and the total stall. Keeps plain numbers; any thread.
 */
#ifndef TROCAR_CONSUMER_SESSION_HELD_TRIGGERS_H
#define TROCAR_CONSUMER_SESSION_HELD_TRIGGERS_H

#include <stdint.h>

#include "consumer/signals/trigger_reason.h"

struct jsonw;

/* The held triggers of one cause in one cgroup. */
struct held_triggers {
	uint64_t count;
	uint64_t largest_ms; /* of the stalls that crossed their thresholds */
	uint64_t sum_us;     /* time in which a task stalled; no moment counts twice */
	uint64_t counted_us; /* the kernel's total up to which sum_us has counted */
};

/* Adds one trigger. */
void held_triggers_add(struct held_triggers *h, const struct trigger_reason *reason);

/* Sets the sums to zero. Stalls that were counted before do not count again. */
void held_triggers_reset(struct held_triggers *h);

/* Writes "largest_ms" and "sum_ms" for a cause that is pressure; writes nothing for others. */
void held_triggers_write_stall(const struct held_triggers *h, enum trigger_cause cause,
			       struct jsonw *w);

/*
 * Writes the array `key` with an object {"trigger", "resource", "triggers", "largest_ms", "sum_ms"}
 * for each cause with held triggers; writes nothing if there are none.
 */
void held_triggers_write(const struct held_triggers held[CAUSE_COUNT_], struct jsonw *w,
			 const char *key);

#endif
