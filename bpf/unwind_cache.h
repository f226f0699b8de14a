/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_cache.h: what the walks on this CPU found lately: return addresses and
 * the rules for them. Stacks are alike from tick to tick, so that most frames
 * need no search: neither of the range that holds the address nor of its row.
 * It is the kernel side's own, like struct unwind_ranges. An entry is good for
 * the filling of ranges that it was found by: numbers of fillings are never
 * used twice, and neither ranges nor rows change under one.
 */
#ifndef TROCAR_BPF_UNWIND_CACHE_H
#define TROCAR_BPF_UNWIND_CACHE_H

#include "shared/unwind_abi.h"

#define UNWIND_CACHE_BITS 10

/* Rules that no table has: by the frame pointer, ... */
#define UNWIND_CFA_POINTER	 255 /* because there are no rows */
#define UNWIND_CFA_POINTER_TRIED 254 /* because they have none for this address */

/* `pc` lies in a range of `fill` and is walked by `rule`. All zeros: of no
 * filling. */
struct unwind_cached {
	__u64 fill, pc;
	struct unwind_rule rule;
};

struct unwind_cache {
	struct unwind_cached entries[1u << UNWIND_CACHE_BITS];
};

/* The entry where `pc` is, if it is there. */
static __attribute__((always_inline)) inline struct unwind_cached *
unwind_cache_entry(struct unwind_cache *c, __u64 pc)
{
	return &c->entries[pc * 0x9e3779b97f4a7c15ull >> (64 - UNWIND_CACHE_BITS)];
}

#endif
