/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* orc_rows.h: finds the row of an address in the cache, or searches for it in the tables. */
#ifndef TROCAR_BPF_STACK_ORC_ROWS_H
#define TROCAR_BPF_STACK_ORC_ROWS_H

#include "bpf/stack/orc.h"

static __always_inline __u32 orc_hash(__u64 address, __u32 bits)
{
	return (__u32)address * 0x9e3779b1u >> (32 - bits);
}

/* Returns a cache entry: the address with its row. */
static __always_inline __u64 orc_search_entry(__u64 address)
{
	return (__u64)(__u32)address << ORC_ENTRY_BITS | (__u32)orc_search_row(address);
}

/*
 * Returns the row of an address that a tick or another interrupt interrupted. Not inlined, because
 * a walk needs it once.
 */
static __noinline __u32 orc_find_leaf(struct orc_rows *rows, __u64 address)
{
	__u64 *places = &rows->leaves[orc_hash(address, ORC_LEAF_BITS) & (ORC_LEAVES - 2)];
	__u64 first = READ_WORD(places[0]), second = READ_WORD(places[1]);

	if (first >> ORC_ENTRY_BITS == (__u32)address)
		return (__u32)first;
	if (second >> ORC_ENTRY_BITS == (__u32)address)
		return (__u32)second;
	second = orc_search_entry(address);
	places[1] = first;
	places[0] = second;
	return (__u32)second;
}

/*
 * Returns the row of the address before a return address, which is not in the cache after *at. Sets
 * *at to its place.
 */
static __noinline __u32 orc_seek_call(struct orc_rows *rows, __u64 address, __u32 *at)
{
	struct orc_places *places = map_single(&orc_places);
	__u32 place;
	__u64 entry;
	__u16 *hashed;

	if (!places)
		return 0;
	hashed = &places->items[orc_hash(address, ORC_PLACE_BITS)];
	place = READ_WORD(*hashed) & (ORC_CALLS - 1);
	entry = READ_WORD(rows->calls[place]);
	if (entry >> ORC_ENTRY_BITS != (__u32)address) {
		place = places->added++ & (ORC_CALLS - 1);
		entry = orc_search_entry(address);
		rows->calls[place] = entry;
		*hashed = place;
	}
	*at = place;
	return (__u32)entry;
}

/*
 * Returns the row of the address before a return address. *at is the place of the row of the
 * previous frame, and becomes the place of this one.
 */
static __always_inline __u32 orc_find_call(struct orc_rows *rows, __u64 address, __u32 *at)
{
	__u32 place = (READ_WORD(*at) + 1) & (ORC_CALLS - 1);
	__u64 entry = READ_WORD(rows->calls[place]);

	if (entry >> ORC_ENTRY_BITS != (__u32)address)
		return orc_seek_call(rows, address, at);
	*at = place;
	return (__u32)entry;
}

#endif
