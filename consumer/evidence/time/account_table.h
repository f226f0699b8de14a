/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * account_table.h: the maps `accounts_near` and `accounts` in parts: they have the time accounts of
 * threads that have ended too, and of sessions that have. Main thread only.
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
	bool near; /* the part is of accounts_near: it comes first */
	bool near_read;
};

/* Reads the next part. 0 or -errno. */
int account_table_read(const struct pinned_maps *pins, struct account_elements *e);

/* Removes accounts from the map, in slices. NULL in `elements`: none is being removed. */
struct account_sweep {
	struct account_elements *elements; /* owned */
};

/* Begins to remove the accounts that no running session takes: the table has room for the next. */
void account_table_sweep_begin(struct account_sweep *s);

/* Removes until `until_ns` (clock_mono_ns). */
void account_table_sweep_step(struct account_sweep *s, const struct pinned_maps *pins,
			      uint64_t until_ns);

/* Stops removing. */
void account_table_sweep_stop(struct account_sweep *s);

/*
 * Removes every account at once: while no session has the program attached they are the leftovers
 * of a killed consumer.
 */
void account_table_empty(const struct pinned_maps *pins);

#endif
