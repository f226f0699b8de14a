/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * account_table.h: reads the maps `accounts_near` and `accounts` in parts. The maps also have the
 * time accounts of ended threads and of ended sessions. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_ACCOUNT_TABLE_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_ACCOUNT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/kernel/map_batch.h"
#include "shared/abi/abi.h"

struct pinned_maps;

/* One part of the map. All 0 before the first. */
struct account_elements {
	struct account_key keys[MAP_BATCH_PART];
	struct thread_times values[MAP_BATCH_PART];
	struct map_part part;
	bool near; /* the part is of accounts_near, which is read first */
	bool near_read;
};

/* Reads the next part. 0 or -errno. */
int account_table_read(const struct pinned_maps *pins, struct account_elements *e);

/* Removes accounts from the map, in slices. `elements` NULL: no removal in progress. */
struct account_sweep {
	struct account_elements *elements; /* owned */
};

/* Starts to remove the accounts that no running session needs, to make space in the table. */
void account_table_sweep_begin(struct account_sweep *s);

/* Removes accounts until `until_ns` (clock_mono_ns). */
void account_table_sweep_step(struct account_sweep *s, const struct pinned_maps *pins,
			      uint64_t until_ns);

/* Stops removing. */
void account_table_sweep_stop(struct account_sweep *s);

/*
 * Removes every account at once. While no session has the program attached, they are left over from
 * a killed consumer.
 */
void account_table_empty(const struct pinned_maps *pins);

#endif
