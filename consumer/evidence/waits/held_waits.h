/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * held_waits.h: the threads that wait, at the end of a session, for a lock with a known holder.
 * Threads that wait for each other in a circle are a deadlock, and so is all that waits for one of
 * them. Pure. The main thread fills the list, then the report thread owns it.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_HELD_WAITS_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_HELD_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/sampling/stack_table.h"

#define HELD_WAITS_CYCLE 8 /* threads of a circle that are named */

struct held_wait {
	const struct stack *stack; /* borrowed: where the thread waits */
	uint64_t address;	   /* of the futex; 0: a lock of the kernel */
	uint64_t ns;		   /* of this wait, in the session */
	uint32_t tid, holder;	   /* threads; equal: it waits for itself */
	bool deadlocked;	   /* set by held_waits_find_cycle */
};

/* All 0: empty. Release with held_waits_done. */
struct held_waits {
	struct held_wait *items; /* owned */
	size_t count, space;
};

/* Adds a copy. Without memory it is left out: a deadlock may be missed, never made up. */
void held_waits_add(struct held_waits *h, const struct held_wait *wait);
void held_waits_done(struct held_waits *h);

/*
 * Finds the circle that most threads wait in or for, and marks all of these threads. Sets
 * ret_cycle[i] to the circle's threads in order: each waits for the next, the last for the first.
 * Returns how many threads the circle has, of which at most HELD_WAITS_CYCLE are set; 0: none.
 */
size_t held_waits_find_cycle(struct held_waits *h,
			     const struct held_wait *ret_cycle[HELD_WAITS_CYCLE]);

/* Returns the time of the marked waits. */
uint64_t held_waits_deadlocked_ns(const struct held_waits *h);

/*
 * Returns whether a marked wait of the process (0: of any) is for the futex at `address`.
 */
bool held_waits_is_deadlocked(const struct held_waits *h, uint32_t tgid, uint64_t address);

#endif
