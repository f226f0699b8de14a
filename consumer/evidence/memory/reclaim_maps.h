/* SPDX-License-Identifier: BSD-2-Clause */
/* reclaim_maps.h: reads the counts of the signal `reclaim`'s programs. Main thread only. */
#ifndef TROCAR_CONSUMER_EVIDENCE_MEMORY_RECLAIM_MAPS_H
#define TROCAR_CONSUMER_EVIDENCE_MEMORY_RECLAIM_MAPS_H

#include <stdint.h>

#include "shared/abi/abi.h"

struct pinned_maps;

/* All elements of both maps at one time, and the losses of one slot. */
struct reclaim_reading {
	uint64_t at_ns;		  /* CLOCK_MONOTONIC, before the first map was read */
	struct reclaim_key *keys; /* owned, as the next three */
	struct reclaim_sums *sums;
	struct reclaim_open_key *open_keys;
	struct reclaim_open *open;
	uint32_t n_sums, n_open;
	struct slot_reclaim losses;
};

/*
 * Reads both maps. `open` has only the reclaim events that were unfinished when the sums had been
 * read, so no event is in both. Returns 0, -ENOMEM or -errno. Release with reclaim_maps_forget.
 */
int reclaim_maps_read(const struct pinned_maps *pins, uint32_t slot,
		      struct reclaim_reading *ret_read);
void reclaim_maps_forget(struct reclaim_reading *read);

/* Empties both maps, which hold counts of programs that are no longer attached. */
void reclaim_maps_empty(const struct pinned_maps *pins);

#endif
