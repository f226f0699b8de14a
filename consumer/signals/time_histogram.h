/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * time_histogram.h: how many times were how long, in the steps in which the kernel side counts them
 * (bpf/maps/time_bucket.h), and the bounds below which so many of them are. The bounds are the same
 * for all, whatever the number of elements: counts of CPUs, sessions and hosts add up. Pure.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_TIME_HISTOGRAM_H
#define TROCAR_CONSUMER_SIGNALS_TIME_HISTOGRAM_H

#include <stdint.h>

#include "shared/abi/abi.h"

struct jsonw;

/*
 * Returns the longest time that an element of so many counts, in ns; UINT64_MAX for the last one.
 */
uint64_t time_histogram_le_of(unsigned int element, unsigned int buckets);

/* Returns the element that a time counts in. */
unsigned int time_histogram_element_of(uint64_t ns, unsigned int buckets);

/* Returns the element that a time counts in. */
unsigned int time_histogram_element(uint64_t ns);

/* Returns how many times are counted. */
uint64_t time_histogram_count_of(const uint64_t *counts, unsigned int buckets);

/*
 * Returns the bound of the element in which the time is that `pct` of 100 times are not longer
 * than: at most a half more than the time itself. UINT64_MAX: in the last element. 0 without any.
 */
uint64_t time_histogram_percentile_of(const uint64_t *counts, unsigned int buckets,
				      unsigned int pct);

/* The same of QUEUE_BUCKETS elements. */
uint64_t time_histogram_le_ns(unsigned int element);
uint64_t time_histogram_count(const uint64_t counts[QUEUE_BUCKETS]);
uint64_t time_histogram_percentile_ns(const uint64_t counts[QUEUE_BUCKETS], unsigned int pct);

/* Writes `ns` in `key`; null where it is UINT64_MAX. */
void time_histogram_write_bound(const char *key, uint64_t ns, struct jsonw *w);

/* Writes p50, p90 and p99. */
void time_histogram_write_percentiles(const uint64_t *counts, unsigned int buckets,
				      struct jsonw *w);

/*
 * Writes the keys of a line `histogram`: unit, buckets that count some, count, sum, p50, p90, p99.
 * A bound that is not known is null.
 */
void time_histogram_write_of(const uint64_t *counts, unsigned int buckets, uint64_t sum_ns,
			     struct jsonw *w);
void time_histogram_write(const uint64_t counts[QUEUE_BUCKETS], uint64_t sum_ns, struct jsonw *w);

#endif
