/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block_maps.h: complete readings of the kernel side's counts of disk requests. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_DISKS_BLOCK_MAPS_H
#define TROCAR_CONSUMER_EVIDENCE_DISKS_BLOCK_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

struct pinned_maps;

/* A reading of the maps. All 0: empty. */
struct block_reading {
	struct block_key *keys;	    /* owned; keys of `sums` */
	struct block_sums *sums;    /* owned; of all cgroups */
	struct block_request *open; /* owned; unfinished requests of all cgroups */
	uint32_t n_sums, n_open;
	struct slot_block losses; /* of the slot, and of requests without a watch */
	uint64_t at_ns;
};

/*
 * Reads all maps; the losses are those of `slot`. Returns 0 or -errno; on failure nothing is kept.
 * Release with block_maps_forget.
 */
int block_maps_read(const struct pinned_maps *pins, uint32_t slot, struct block_reading *ret_read);
void block_maps_forget(struct block_reading *read);

/* Empties the maps. Call while the programs are not attached. */
void block_maps_empty(const struct pinned_maps *pins);

#endif
