/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * time_histogram.h: how many times were how long, in the steps in which the kernel side counts them
 * (QUEUE_BUCKETS), and the bounds below which so many of them are. The bounds are the same for all:
 * counts of CPUs, sessions and hosts add up. Pure.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_TIME_HISTOGRAM_H
#define TROCAR_CONSUMER_SIGNALS_TIME_HISTOGRAM_H

#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/json/jsonw.h"

/* Returns the longest time that an element counts, in ns; UINT64_MAX for the last one. */
uint64_t time_histogram_le_ns(unsigned int element);

/* Returns how many times are counted. */
uint64_t time_histogram_count(const uint64_t counts[QUEUE_BUCKETS]);

/*
 * Returns the bound of the element in which the time is that `pct` of 100 times are not longer
 * than: at most a half more than the time itself. UINT64_MAX: in the last element. 0 without any.
 */
uint64_t time_histogram_percentile_ns(const uint64_t counts[QUEUE_BUCKETS], unsigned int pct);

/* Writes `ns` in `key`; null where it is UINT64_MAX. */
void time_histogram_write_bound(const char *key, uint64_t ns, struct jsonw *w);

/*
 * Writes the keys of a line `histogram`: unit, buckets that count some, count, sum, p50, p90, p99.
 * A bound that is not known is null.
 */
void time_histogram_write(const uint64_t counts[QUEUE_BUCKETS], uint64_t sum_ns, struct jsonw *w);

#endif
