/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table.h: creates elements of hash tables when their keys are first seen. A table without
 * preallocation refuses a new element for two reasons. It is full (-E2BIG). Or the CPU's cache of
 * the kernel's allocator is empty until an interrupt refills it (-ENOMEM; -EBUSY: the bucket's lock
 * is held on this CPU). The second reason is temporary: the next event of the key tries again.
 *
 * The owners of the watches share the space of a table: one owner may not fill it (TABLE_SHARE),
 * and an owner above its share loses only its own elements. Only created and removed elements are
 * counted, so events of known keys cost nothing more.
 */
#ifndef TROCAR_BPF_MAPS_TABLE_H
#define TROCAR_BPF_MAPS_TABLE_H

#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/maps/maps.h"

/* Number of elements of each table; 0: it is not shared. The loader sets it. */
const volatile __u32 table_sizes[TABLES_] __weak = {};

/* Returns the element counts of all tables for the owner of the watch of slot `index`, or NULL. */
static __always_inline __s32 *table_used(struct control *c, __u32 index)
{
	struct slot *slot;

	if (index == NO_SLOT)
		return c->unwatched;
	slot = bpf_map_lookup_elem(&slots, &index);
	if (!slot)
		return 0;
	index = READ_WORD(slot->payer);
	slot = bpf_map_lookup_elem(&slots, &index);
	if (!slot)
		return 0;
	/* Otherwise the compiler adds to the pointer before the check for NULL. */
	asm volatile("" : "+r"(slot));
	return slot->used;
}

/*
 * Returns whether the owner of the watch of slot `index` may have one more element of the table.
 * `table` is an enum table, or TABLES_ for a table that is not shared. This function and the next
 * one are global: the verifier checks each once.
 */
__weak __noinline int table_may_grow(__u32 table, __u32 index)
{
	struct control *c = control_get();
	const __s32 *used;
	__s64 size;

	if (!c || table >= TABLES_)
		return 1;
	size = table_sizes[table];
	used = table_used(c, index);
	if (!size || !used)
		return 1;
	asm volatile("" : "+r"(used));
	return READ_WORD(used[table]) < TABLE_SHARE * (size - READ_WORD(c->used[table]));
}

/* Adds `n`, which may be negative, to the element count of the table for the owner of the watch. */
__weak __noinline int table_count(__u32 table, __u32 index, int n)
{
	struct control *c = control_get();
	__s32 *used;

	if (!c || table >= TABLES_)
		return 0;
	__sync_fetch_and_add(&c->used[table], n);
	used = table_used(c, index);
	if (!used)
		return 0;
	asm volatile("" : "+r"(used));
	__sync_fetch_and_add(&used[table], n);
	return 0;
}

/*
 * Adds an element for the watch of slot `index`. Returns 0 or the error of the update. The error
 * has 32 bits, because before Linux 6.4 the upper half of the result is garbage. -E2BIG also means
 * that the owner has used up its share.
 */
static __always_inline int table_add(void *map, __u32 table, __u32 index, const void *key,
				     const void *value)
{
	int error;

	if (!table_may_grow(table, index))
		return -E2BIG;
	error = bpf_map_update_elem(map, key, value, BPF_NOEXIST);
	if (!error)
		table_count(table, index, 1);
	return error;
}

/*
 * Returns the element of the key. Creates it as a copy of `fresh` if there is none. Returns NULL
 * without space; *ret_error is then the error of table_add.
 */
static __always_inline void *table_get(void *map, __u32 table, __u32 index, const void *key,
				       const void *fresh, int *ret_error)
{
	void *value = bpf_map_lookup_elem(map, key);

	*ret_error = 0;
	if (value)
		return value;
	*ret_error = table_add(map, table, index, key, fresh);
	return bpf_map_lookup_elem(map, key);
}

/* Returns whether the update failed for a temporary reason. */
static __always_inline bool table_was_short(int error)
{
	return error != -E2BIG;
}

#endif
