/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_code_cache.h: caches the findings about the code of a frame, by its address
 * (unwind_code.h). Stacks differ little from tick to tick, and one search reads hundreds of
 * instructions.
 *
 * The cache is written only by the programs. An entry is valid for the table generation and the
 * range in which it was found. Code that is not in a file may be overwritten by a runtime: there
 * the entry is valid as long as the code at the address is unchanged. A new entry replaces the one
 * at its place.
 */
#ifndef TROCAR_BPF_UNWIND_UNWIND_CODE_CACHE_H
#define TROCAR_BPF_UNWIND_UNWIND_CODE_CACHE_H

#include <linux/types.h>

#define UNWIND_KEPT_CALLERS 512u /* entries; powers of two */
#define UNWIND_KEPT_LEAVES  256u

/* Levels as in struct unwind_code_state. All zeros: an entry of no range. */
struct unwind_kept {
	__u64 range; /* UNWIND_CACHED_RANGE */
	__u64 pc;    /* for a leaf with UNWIND_CACHED_EXACT */
	__u64 sum;   /* of the code at pc; 0: code of a file */
	__s32 sp, fp, room;
	__u16 taken; /* bytes of arguments that the return pops */
	__u8 fp_is;  /* enum unwind_code_fp */
	__u8 found;  /* enum unwind_code_found, and UNWIND_KEPT_... */
};

#define UNWIND_KEPT_PROVED   0x80u
#define UNWIND_KEPT_SETS     0x40u
#define UNWIND_KEPT_STRAIGHT 0x20u
#define UNWIND_KEPT_FOUND    0x0fu

struct unwind_code_cache {
	/* In the order of struct unwind_cache: the entries of one walk are adjacent. */
	struct unwind_kept callers[UNWIND_KEPT_CALLERS];
	struct unwind_kept leaves[UNWIND_KEPT_LEAVES]; /* by a hash of pc */
};

/* Returns the entry of the return address at index `place` of struct unwind_cache. */
static __attribute__((always_inline)) inline struct unwind_kept *
unwind_kept_caller(struct unwind_code_cache *c, __u32 place)
{
	return &c->callers[place & (UNWIND_KEPT_CALLERS - 1)];
}

/* Returns the entry for the leaf, which may be that of another one. */
static __attribute__((always_inline)) inline struct unwind_kept *
unwind_kept_leaf(struct unwind_code_cache *c, __u64 pc)
{
	return &c->leaves[pc * 0x9e3779b97f4a7c15ull >> 56 & (UNWIND_KEPT_LEAVES - 1)];
}

/* Returns a checksum of `count` words, which differs if any one of them differs. */
static __attribute__((always_inline)) inline __u64 unwind_kept_sum(const __u64 *words, __u32 count)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < count; i++) {
		sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15ull;
		sum ^= sum >> 32;
	}
	return sum;
}

#endif
