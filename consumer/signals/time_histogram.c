/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/time_histogram.h"
#include "shared/json/jsonw.h"

uint64_t time_histogram_le_of(unsigned int element, unsigned int buckets)
{
	uint64_t le_ns = QUEUE_FIRST_NS << element / 2;

	if (element >= buckets - 1)
		return UINT64_MAX;
	return element % 2 ? le_ns / 2 * 3 : le_ns;
}

unsigned int time_histogram_element_of(uint64_t ns, unsigned int buckets)
{
	unsigned int element = 0;

	while (element < buckets - 1 && ns > time_histogram_le_of(element, buckets))
		element++;
	return element;
}

unsigned int time_histogram_element(uint64_t ns)
{
	return time_histogram_element_of(ns, QUEUE_BUCKETS);
}

uint64_t time_histogram_count_of(const uint64_t *counts, unsigned int buckets)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < buckets; i++)
		count += counts[i];
	return count;
}

uint64_t time_histogram_percentile_of(const uint64_t *counts, unsigned int buckets,
				      unsigned int pct)
{
	uint64_t count = time_histogram_count_of(counts, buckets), below = 0;

	for (unsigned int i = 0; i < buckets; i++) {
		below += counts[i];
		if (below && below * 100 >= count * pct)
			return time_histogram_le_of(i, buckets);
	}
	return 0;
}

uint64_t time_histogram_le_ns(unsigned int element)
{
	return time_histogram_le_of(element, QUEUE_BUCKETS);
}

uint64_t time_histogram_count(const uint64_t counts[QUEUE_BUCKETS])
{
	return time_histogram_count_of(counts, QUEUE_BUCKETS);
}

uint64_t time_histogram_percentile_ns(const uint64_t counts[QUEUE_BUCKETS], unsigned int pct)
{
	return time_histogram_percentile_of(counts, QUEUE_BUCKETS, pct);
}

void time_histogram_write_bound(const char *key, uint64_t ns, struct jsonw *w)
{
	if (ns == UINT64_MAX)
		jsonw_null(w, key);
	else
		jsonw_u64(w, key, ns);
}

void time_histogram_write_percentile(const char *key, const uint64_t counts[QUEUE_BUCKETS],
				     unsigned int pct, struct jsonw *w)
{
	time_histogram_write_bound(key, time_histogram_percentile_ns(counts, pct), w);
}

static void write_buckets(const uint64_t *counts, unsigned int buckets, struct jsonw *w)
{
	jsonw_array(w, "buckets");
	for (unsigned int i = 0; i < buckets; i++) {
		if (!counts[i])
			continue;
		jsonw_array(w, NULL);
		time_histogram_write_bound(NULL, time_histogram_le_of(i, buckets), w);
		jsonw_u64(w, NULL, counts[i]);
		jsonw_array_end(w);
	}
	jsonw_array_end(w);
}

void time_histogram_write_percentiles(const uint64_t *counts, unsigned int buckets, struct jsonw *w)
{
	time_histogram_write_bound("p50", time_histogram_percentile_of(counts, buckets, 50), w);
	time_histogram_write_bound("p90", time_histogram_percentile_of(counts, buckets, 90), w);
	time_histogram_write_bound("p99", time_histogram_percentile_of(counts, buckets, 99), w);
}

void time_histogram_write_of(const uint64_t *counts, unsigned int buckets, uint64_t sum_ns,
			     struct jsonw *w)
{
	jsonw_string(w, "unit", "ns");
	write_buckets(counts, buckets, w);
	jsonw_u64(w, "count", time_histogram_count_of(counts, buckets));
	jsonw_u64(w, "sum", sum_ns);
	time_histogram_write_percentiles(counts, buckets, w);
}

void time_histogram_write(const uint64_t counts[QUEUE_BUCKETS], uint64_t sum_ns, struct jsonw *w)
{
	time_histogram_write_of(counts, QUEUE_BUCKETS, sum_ns, w);
}
