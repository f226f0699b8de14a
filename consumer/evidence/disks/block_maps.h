/* SPDX-License-Identifier: BSD-2-Clause */
/* block_maps.h: requests to disks as the kernel side has them, read whole. Main thread only. */
#ifndef TROCAR_CONSUMER_EVIDENCE_DISKS_BLOCK_MAPS_H
#define TROCAR_CONSUMER_EVIDENCE_DISKS_BLOCK_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

struct pinned_maps;

/* A reading of the maps. All 0: empty. */
struct block_reading {
	struct block_key *keys;	    /* owned; of `sums` */
	struct block_sums *sums;    /* owned; of all cgroups */
	struct block_request *open; /* owned; requests of all cgroups that are not over */
	uint32_t n_sums, n_open;
	struct slot_block losses; /* of the slot, and of no watch */
	uint64_t at_ns;
};

/* Reads everything; the losses are those of `slot`. 0 or -errno; then nothing is kept. */
int block_maps_read(const struct pinned_maps *pins, uint32_t slot, struct block_reading *ret_read);
void block_maps_forget(struct block_reading *read);

/* Empties the maps. Call while the programs are not attached. */
void block_maps_empty(const struct pinned_maps *pins);

#endif
