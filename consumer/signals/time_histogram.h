/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * time_histogram.h: histograms of times in the buckets of the kernel side (bpf/maps/time_bucket.h),
 * and their percentiles. The bucket bounds are the same for every number of buckets, so the counts
 * of CPUs, sessions and hosts add up. Pure.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_TIME_HISTOGRAM_H
#define TROCAR_CONSUMER_SIGNALS_TIME_HISTOGRAM_H

#include <stdint.h>

#include "shared/abi/abi.h"

struct jsonw;

/* Returns the upper bound of bucket `element` in ns; UINT64_MAX for the last one. */
uint64_t time_histogram_le_of(unsigned int element, unsigned int buckets);

/* Returns the bucket that counts a time of `ns`. */
unsigned int time_histogram_element_of(uint64_t ns, unsigned int buckets);

/* Returns the bucket that counts a time of `ns`. */
unsigned int time_histogram_element(uint64_t ns);

/* Returns the number of counted times. */
uint64_t time_histogram_count_of(const uint64_t *counts, unsigned int buckets);

/*
 * Returns the upper bound of the bucket that has the `pct`th percentile, at most half above the
 * percentile itself. UINT64_MAX if that is the last bucket; 0 without any counts.
 */
uint64_t time_histogram_percentile_of(const uint64_t *counts, unsigned int buckets,
				      unsigned int pct);

/* The functions above for QUEUE_BUCKETS buckets. */
uint64_t time_histogram_le_ns(unsigned int element);
uint64_t time_histogram_count(const uint64_t counts[QUEUE_BUCKETS]);
uint64_t time_histogram_percentile_ns(const uint64_t counts[QUEUE_BUCKETS], unsigned int pct);

/* Writes `ns` under `key`; null if it is UINT64_MAX. */
void time_histogram_write_bound(const char *key, uint64_t ns, struct jsonw *w);

/* Writes the `pct`th percentile under `key`. */
void time_histogram_write_percentile(const char *key, const uint64_t counts[QUEUE_BUCKETS],
				     unsigned int pct, struct jsonw *w);

/* Writes p50, p90 and p99. */
void time_histogram_write_percentiles(const uint64_t *counts, unsigned int buckets,
				      struct jsonw *w);

/*
 * Writes the keys of a `histogram` line: unit, the buckets that are not empty, count, sum, p50,
 * p90, p99. An unknown bound is null.
 */
void time_histogram_write_of(const uint64_t *counts, unsigned int buckets, uint64_t sum_ns,
			     struct jsonw *w);
void time_histogram_write(const uint64_t counts[QUEUE_BUCKETS], uint64_t sum_ns, struct jsonw *w);

#endif
