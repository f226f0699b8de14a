/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_cache.h: caches the return addresses that walks on this CPU met, with their rules. Stacks
 * differ little from tick to tick, so most frames need no search for a range and a row. The cache
 * is the kernel side's own, like struct unwind_ranges. An entry is valid for the table generation
 * that it was found by: generations are never used twice, and neither ranges nor rows change within
 * one.
 *
 * Entries lie in the order in which a walk met them, so the entry of the next frame is most often
 * the next one. At a tick none of this memory is cached, and successive cache lines load faster
 * than scattered ones. A new entry replaces the oldest.
 */
#ifndef TROCAR_BPF_UNWIND_CACHE_H
#define TROCAR_BPF_UNWIND_CACHE_H

#include "shared/abi/unwind_abi.h"

#define UNWIND_CACHE_BITS    10
#define UNWIND_CACHE_ENTRIES (1u << UNWIND_CACHE_BITS)

/* A rule that no table has: use the frame pointer, because the address has no row. */
#define UNWIND_CFA_POINTER 255

/* `pc` lies in a range and is walked by `rule`. All zeros: an entry of no generation. */
struct unwind_cached {
	__u64 range; /* UNWIND_CACHED_RANGE */
	__u64 pc;
	struct unwind_rule rule;
};

/*
 * A table generation and the number of one of its ranges in one word: a value of a per-CPU map has
 * at most 32 KiB.
 */
#define UNWIND_CACHED_RANGE(generation, number) ((__u64)(generation) << 16 | (number))
#define UNWIND_CACHED_GENERATION(range)		((range) >> 16)
#define UNWIND_CACHED_NUMBER(range)		((__u32)(range)&0xffff)

struct unwind_cache {
	__u64 added; /* entries added since the start */
	struct unwind_cached entries[UNWIND_CACHE_ENTRIES];
	__u16 places[UNWIND_CACHE_ENTRIES]; /* index in `entries`, by a hash of pc */
};

static __attribute__((always_inline)) inline __u16 *unwind_cache_place(struct unwind_cache *c,
								       __u64 pc)
{
	return &c->places[pc * 0x9e3779b97f4a7c15ull >> (64 - UNWIND_CACHE_BITS)];
}

/*
 * Finds `pc` in `generation`. Returns 1 with its rule and the number of its range, else 0. *at is
 * the place of the frame before and becomes the place of this one.
 */
static __attribute__((always_inline)) inline __u32 unwind_cache_find(struct unwind_cache *c,
								     __u64 generation, __u64 pc,
								     __u32 *at, __u32 *ret_range,
								     struct unwind_rule *ret_rule)
{
	__u32 place = (*at + 1) & (UNWIND_CACHE_ENTRIES - 1);

	if (c->entries[place].pc != pc ||
	    UNWIND_CACHED_GENERATION(c->entries[place].range) != generation)
		place = *unwind_cache_place(c, pc) & (UNWIND_CACHE_ENTRIES - 1);
	if (c->entries[place].pc != pc ||
	    UNWIND_CACHED_GENERATION(c->entries[place].range) != generation)
		return 0;
	*ret_rule = c->entries[place].rule;
	*ret_range = UNWIND_CACHED_NUMBER(c->entries[place].range);
	*at = place;
	return 1;
}

/* Adds `pc`, which has no entry; *at becomes its place. */
static __attribute__((always_inline)) inline void
unwind_cache_add(struct unwind_cache *c, struct unwind_cached entry, __u32 *at)
{
	__u32 place = c->added++ & (UNWIND_CACHE_ENTRIES - 1);

	c->entries[place] = entry;
	*unwind_cache_place(c, entry.pc) = place;
	*at = place;
}

#endif
