/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_cache.h: what the walks on this CPU found lately: return addresses and the rules for them.
 * Stacks are alike from tick to tick, so that most frames need no search: neither of the range that
 * holds the address nor of its row. It is the kernel side's own, like struct unwind_ranges. An
 * entry is good for the filling of ranges that it was found by: numbers of fillings are never used
 * twice, and neither ranges nor rows change under one.
 *
 * Entries stand in the order in which a walk met them, so that the next frame's is most often the
 * next one: at a tick all this memory is cold, and a row of lines comes faster than one here and
 * one there. The oldest entry makes room.
 */
#ifndef TROCAR_BPF_UNWIND_CACHE_H
#define TROCAR_BPF_UNWIND_CACHE_H

#include "shared/abi/unwind_abi.h"

#define UNWIND_CACHE_BITS    10
#define UNWIND_CACHE_ENTRIES (1u << UNWIND_CACHE_BITS)

/* A rule that no table has: by the frame pointer, because there is no row for the address. */
#define UNWIND_CFA_POINTER 255

/* `pc` lies in a range and is walked by `rule`. All zeros: of no filling. */
struct unwind_cached {
	__u64 range; /* UNWIND_CACHED_RANGE */
	__u64 pc;
	struct unwind_rule rule;
};

/* A range of a filling in one word: a value of a per-CPU map has at most 32 KiB. */
#define UNWIND_CACHED_RANGE(generation, number) ((__u64)(generation) << 16 | (number))
#define UNWIND_CACHED_GENERATION(range)		((range) >> 16)
#define UNWIND_CACHED_NUMBER(range)		((__u32)(range)&0xffff)

struct unwind_cache {
	__u64 added; /* ever */
	struct unwind_cached entries[UNWIND_CACHE_ENTRIES];
	__u16 places[UNWIND_CACHE_ENTRIES]; /* of entries, by a hash of pc */
};

static __attribute__((always_inline)) inline __u16 *unwind_cache_place(struct unwind_cache *c,
								       __u64 pc)
{
	return &c->places[pc * 0x9e3779b97f4a7c15ull >> (64 - UNWIND_CACHE_BITS)];
}

/*
 * Whether `pc` is known under `generation`; then *ret_rule is its rule. *at, the place of the frame
 * before, becomes its own, *ret_range the number of its range.
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

/* Enters `pc`, which is not known; its place becomes *at. */
static __attribute__((always_inline)) inline void
unwind_cache_add(struct unwind_cache *c, struct unwind_cached entry, __u32 *at)
{
	__u32 place = c->added++ & (UNWIND_CACHE_ENTRIES - 1);

	c->entries[place] = entry;
	*unwind_cache_place(c, entry.pc) = place;
	*at = place;
}

#endif
