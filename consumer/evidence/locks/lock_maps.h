/* SPDX-License-Identifier: BSD-2-Clause */
/* lock_maps.h: complete readings of the kernel side's lock waits. Main thread only. */
#ifndef TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_MAPS_H
#define TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

struct pinned_maps;

/* The waits at the begin of a session. All 0 before. */
struct lock_baseline {
	struct lock_element {
		struct lock_key key;
		struct lock_sums sums;
	} * locks; /* owned */
	struct lock_waker_element {
		struct lock_waker_key key;
		struct lock_waker waker;
	} * wakers;		  /* owned */
	struct lock_record *open; /* owned; waits in progress */
	size_t n_locks, n_wakers, n_open;
	uint64_t begin_ns;
	struct slot_locks losses;
};

/*
 * Reads the ended waits of slot `slot`, the wakers of long ones, the unfinished waits, and the
 * losses. Returns 0 or -errno; on failure nothing is kept. Release with lock_maps_forget.
 */
int lock_maps_read(const struct pinned_maps *pins, uint32_t slot, struct lock_baseline *ret_read);
void lock_maps_forget(struct lock_baseline *read);

/* Removes the waits that no running session needs; with `all`, every wait. */
void lock_maps_sweep(const struct pinned_maps *pins, bool all);

#endif
