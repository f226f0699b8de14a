/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_cache.h: caches the return addresses that walks on this CPU met, with their rules. Stacks
 * differ little from tick to tick, so most frames need no search for a range and a row. The cache
 * is written only by the programs, like struct unwind_ranges. An entry is valid for the table
 * generation in which it was found: generations are never reused, and neither ranges nor rows
 * change within one.
 *
 * Entries are in the order in which a walk met them, so the entry of the next frame is mostly the
 * next one. At a tick none of this memory is in the CPU's caches, and successive cache lines load
 * faster than scattered ones. A new entry replaces the oldest.
 */
#ifndef TROCAR_BPF_UNWIND_UNWIND_CACHE_H
#define TROCAR_BPF_UNWIND_UNWIND_CACHE_H

#include "shared/abi/unwind_abi.h"

#define UNWIND_CACHE_BITS    10
#define UNWIND_CACHE_ENTRIES (1u << UNWIND_CACHE_BITS)

/* Marks a pc that is the next instruction to run, not a return address: no pc has this bit. */
#define UNWIND_CACHED_EXACT (1ull << 63)

/* `pc` is in a range and has `rule`. All zeros: an entry of no generation. */
struct unwind_cached {
	__u64 range; /* UNWIND_CACHED_RANGE */
	__u64 pc;    /* with UNWIND_CACHED_EXACT */
	struct unwind_rule rule;
};

/*
 * A table generation and the index of one of its ranges in one word, to save space: a value of a
 * per-CPU map has at most 32 KiB.
 */
#define UNWIND_CACHED_RANGE(generation, number) ((__u64)(generation) << 16 | (number))
#define UNWIND_CACHED_GENERATION(range)		((range) >> 16)
#define UNWIND_CACHED_NUMBER(range)		((__u32)(range)&0xffff)

/*
 * The ranges of one process of which the files were found unchanged, valid as long as its memory
 * map has not changed since. Finding a file requires a walk of the tree of mappings
 * (mapped_file_find.h). A process seldom changes its map after its start.
 */
struct unwind_checked {
	__u64 start_ns; /* of the process */
	__u64 table_generation;
	__u64 changes; /* of its memory map, as the kernel counts them, plus 1; 0: unknown */
	__u32 tgid, pad;
	__u64 ranges[UNWIND_RANGES / 64]; /* one bit per range */
};

#define UNWIND_CHECKED 8 /* processes that alternate on one CPU; a power of two */

struct unwind_cache {
	__u64 added; /* entries added since the start */
	struct unwind_checked checked[UNWIND_CHECKED];
	struct unwind_cached entries[UNWIND_CACHE_ENTRIES];
	__u16 places[UNWIND_CACHE_ENTRIES]; /* index in `entries`, by a hash of pc */
};

static __attribute__((always_inline)) inline __u16 *unwind_cache_place(struct unwind_cache *c,
								       __u64 pc)
{
	return &c->places[pc * 0x9e3779b97f4a7c15ull >> (64 - UNWIND_CACHE_BITS)];
}

/*
 * Returns the place of this process in `checked`. Clears the checked ranges unless they are of the
 * same process, table and state of the memory map.
 */
static __attribute__((always_inline)) inline __u32
unwind_cache_begin(struct unwind_cache *c, const struct unwind_checked *now)
{
	__u32 place = now->tgid & (UNWIND_CHECKED - 1);
	struct unwind_checked *then = &c->checked[place];

	if (now->changes && then->changes == now->changes &&
	    then->table_generation == now->table_generation && then->tgid == now->tgid &&
	    then->start_ns == now->start_ns)
		return place;
	then->start_ns = now->start_ns;
	then->table_generation = now->table_generation;
	then->changes = now->changes;
	then->tgid = now->tgid;
	for (__u32 i = 0; i < UNWIND_RANGES / 64; i++)
		then->ranges[i] = 0;
	return place;
}

/* Returns the word of `checked[place].ranges` with the bit of `range`. */
static __attribute__((always_inline)) inline __u64 *unwind_cache_checks(struct unwind_cache *c,
									__u32 place, __u32 range)
{
	return &c->checked[place & (UNWIND_CHECKED - 1)]
			.ranges[range / 64 & (UNWIND_RANGES / 64 - 1)];
}

/*
 * Finds `pc` in `generation`. Returns 1 with its rule and the index of its range, else 0. *at is
 * the place of the previous frame and becomes the place of this one.
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
