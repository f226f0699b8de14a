/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * long_wait_table.h: reads the map `long_waits` in parts. The map also has the waits of ended
 * sessions. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_LOCKS_LONG_WAIT_TABLE_H
#define TROCAR_CONSUMER_EVIDENCE_LOCKS_LONG_WAIT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/kernel/map_batch.h"
#include "shared/abi/abi.h"

struct pinned_maps;

/* One part of the map. All 0 before the first. */
struct long_wait_elements {
	uint32_t keys[MAP_BATCH_PART];
	struct long_wait values[MAP_BATCH_PART];
	struct map_part part;
};

/* Reads the next part. 0 or -errno. */
int long_wait_table_read(const struct pinned_maps *pins, struct long_wait_elements *e);

/* Removes waits from the map, in slices. `elements` NULL: no removal in progress. */
struct long_wait_sweep {
	struct long_wait_elements *elements; /* owned */
};

/* Starts to remove the waits that no running session needs, to make space in the table. */
void long_wait_table_sweep_begin(struct long_wait_sweep *s);

/* Removes waits until `until_ns` (clock_mono_ns). */
void long_wait_table_sweep_step(struct long_wait_sweep *s, const struct pinned_maps *pins,
				uint64_t until_ns);

/* Stops removing. */
void long_wait_table_sweep_stop(struct long_wait_sweep *s);

/*
 * Removes every wait at once. While no session has the program attached, they are left over from a
 * killed consumer.
 */
void long_wait_table_empty(const struct pinned_maps *pins);

#endif
