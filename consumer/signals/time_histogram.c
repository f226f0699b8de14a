/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/time_histogram.h"

uint64_t time_histogram_le_ns(unsigned int element)
{
	uint64_t le_ns = QUEUE_FIRST_NS << element / 2;

	if (element >= QUEUE_BUCKETS - 1)
		return UINT64_MAX;
	return element % 2 ? le_ns / 2 * 3 : le_ns;
}

uint64_t time_histogram_count(const uint64_t counts[QUEUE_BUCKETS])
{
	uint64_t count = 0;

	for (int i = 0; i < QUEUE_BUCKETS; i++)
		count += counts[i];
	return count;
}

uint64_t time_histogram_percentile_ns(const uint64_t counts[QUEUE_BUCKETS], unsigned int pct)
{
	uint64_t count = time_histogram_count(counts), below = 0;

	for (unsigned int i = 0; i < QUEUE_BUCKETS; i++) {
		below += counts[i];
		if (below && below * 100 >= count * pct)
			return time_histogram_le_ns(i);
	}
	return 0;
}

void time_histogram_write_bound(const char *key, uint64_t ns, struct jsonw *w)
{
	if (ns == UINT64_MAX)
		jsonw_null(w, key);
	else
		jsonw_u64(w, key, ns);
}

static void write_buckets(const uint64_t counts[QUEUE_BUCKETS], struct jsonw *w)
{
	jsonw_array(w, "buckets");
	for (unsigned int i = 0; i < QUEUE_BUCKETS; i++) {
		if (!counts[i])
			continue;
		jsonw_array(w, NULL);
		time_histogram_write_bound(NULL, time_histogram_le_ns(i), w);
		jsonw_u64(w, NULL, counts[i]);
		jsonw_array_end(w);
	}
	jsonw_array_end(w);
}

void time_histogram_write(const uint64_t counts[QUEUE_BUCKETS], uint64_t sum_ns, struct jsonw *w)
{
	jsonw_string(w, "unit", "ns");
	write_buckets(counts, w);
	jsonw_u64(w, "count", time_histogram_count(counts));
	jsonw_u64(w, "sum", sum_ns);
	time_histogram_write_bound("p50", time_histogram_percentile_ns(counts, 50), w);
	time_histogram_write_bound("p90", time_histogram_percentile_ns(counts, 90), w);
	time_histogram_write_bound("p99", time_histogram_percentile_ns(counts, 99), w);
}
