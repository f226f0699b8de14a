/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * time_bucket.h: the histogram buckets of times: half octaves (QUEUE_BUCKETS). A histogram with
 * more buckets has the same bounds, and more at the end.
 */
#ifndef TROCAR_BPF_MAPS_TIME_BUCKET_H
#define TROCAR_BPF_MAPS_TIME_BUCKET_H

#include <linux/types.h>

#include "shared/abi/abi.h"

/* Unit tests compile this file for the host. */
#if defined(__bpf__)
#define TIME_BUCKET_CALL __attribute__((weak, noinline))
#else
#define TIME_BUCKET_CALL static inline
#endif

/*
 * Returns the index of the bucket, of `buckets`, that counts a time of `ns`. A global function: the
 * verifier checks it once, and follows one number after each call instead of one per bucket.
 */
TIME_BUCKET_CALL __u32 time_bucket_of(__u64 ns, __u32 buckets)
{
	__u64 halves = ns ? (ns - 1) >> (QUEUE_FIRST_SHIFT - 1) : 0;
	__u32 n, log = 0;

	if (halves < 2)
		return 0;
	if (halves >> (buckets / 2 + 1))
		return buckets - 1;
	n = halves;
	for (__u32 shift = 16; shift; shift >>= 1) {
		__u32 step = n >> shift ? shift : 0;

		n >>= step;
		log += step;
	}
	n = 2 * log + (halves >> (log - 1) & 1) - 1;
	return n < buckets ? n : buckets - 1;
}

static inline __attribute__((always_inline)) __u32 time_bucket(__u64 ns)
{
	return time_bucket_of(ns, QUEUE_BUCKETS);
}

/* Counts a time of `ns` in its bucket of `counts`, which has `buckets` and which other CPUs use. */
static inline __attribute__((always_inline)) void time_bucket_count(__u32 *counts, __u32 buckets,
								    __u64 ns)
{
	__u32 bucket = time_bucket_of(ns, buckets);

	if (bucket < buckets)
		__sync_fetch_and_add(&counts[bucket], 1);
}

#endif
