/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table.h: makes elements of hash tables when their keys are first met. A table without
 * preallocation refuses a new element for two reasons: it is full (-E2BIG), or the CPU's cache of
 * the kernel's allocator is empty until an interrupt refills it (-ENOMEM; -EBUSY: the bucket's lock
 * is held on this CPU). The second reason passes: the next event of the same key tries again.
 *
 * The room of a table is shared by owner of the watch that an element is for: one owner may not
 * fill it (TABLE_SHARE), and its losses then are its own. Only elements that are made or removed
 * are counted, so events of known keys cost nothing more.
 */
#ifndef TROCAR_BPF_MAPS_TABLE_H
#define TROCAR_BPF_MAPS_TABLE_H

#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/maps/maps.h"

/* Of how many elements each table is; 0: it is not shared. The loader sets it. */
const volatile __u32 table_sizes[TABLES_] __weak = {};

/* Returns how many elements of each table are counted for the watch of slot `index`, or NULL. */
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
	/* The compiler would add to the pointer before it is known not to be NULL. */
	asm volatile("" : "+r"(slot));
	return slot->used;
}

/*
 * Whether the owner of the watch of slot `index` may have one more element of the table; enum
 * table, or TABLES_ of a table that is not shared. It and the next one are global functions: the
 * verifier checks them once.
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

/* Counts `n` elements of the table more, or less, for the owner of the watch. */
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
 * Adds an element for the watch of slot `index`. 0 or the error of the update, of 32 bits, because
 * before Linux 6.4 the upper half of its result is garbage; -E2BIG too where the owner has its
 * share.
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
 * Returns the element of the key, made as a copy of `fresh` when there is none. NULL without room:
 * *ret_error is the error of table_add then.
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

/* Whether the update found no room for a reason that passes. */
static __always_inline bool table_was_short(int error)
{
	return error != -E2BIG;
}

#endif
