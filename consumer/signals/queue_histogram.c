/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/queue_histogram.h"

#include "shared/tools/macro.h"

static const char *const names[] = {
#define BEHIND(id, json, help) [QUEUE_##id] = (json),
#include "shared/abi/queue_behind.def"
#undef BEHIND
};
_Static_assert(ARRAY_SIZE(names) == QUEUE_BEHIND_, "a row for each");

const char *queue_histogram_behind_name(enum queue_behind behind)
{
	return names[behind];
}

void queue_histogram_add(struct queue_histogram *h, const struct thread_queue *queue)
{
	for (int i = 0; i < QUEUE_BUCKETS; i++)
		h->waits[i] += queue->waits[i];
	for (int i = 0; i < QUEUE_BEHIND_; i++)
		h->behind_ns[i] += queue->behind_ns[i];
}

void queue_histogram_merge(struct queue_histogram *h, const struct queue_histogram *more)
{
	for (int i = 0; i < QUEUE_BUCKETS; i++)
		h->waits[i] += more->waits[i];
	for (int i = 0; i < QUEUE_BEHIND_; i++)
		h->behind_ns[i] += more->behind_ns[i];
}

uint64_t queue_histogram_le_ns(unsigned int element)
{
	uint64_t le_ns = QUEUE_FIRST_NS << element / 2;

	if (element >= QUEUE_BUCKETS - 1)
		return UINT64_MAX;
	return element % 2 ? le_ns / 2 * 3 : le_ns;
}

uint64_t queue_histogram_count(const struct queue_histogram *h)
{
	uint64_t count = 0;

	for (int i = 0; i < QUEUE_BUCKETS; i++)
		count += h->waits[i];
	return count;
}

uint64_t queue_histogram_sum_ns(const struct queue_histogram *h)
{
	uint64_t sum_ns = 0;

	for (int i = 0; i < QUEUE_BEHIND_; i++)
		sum_ns += h->behind_ns[i];
	return sum_ns;
}

uint64_t queue_histogram_percentile_ns(const struct queue_histogram *h, unsigned int pct)
{
	uint64_t count = queue_histogram_count(h), below = 0;

	for (unsigned int i = 0; i < QUEUE_BUCKETS; i++) {
		below += h->waits[i];
		if (below && below * 100 >= count * pct)
			return queue_histogram_le_ns(i);
	}
	return 0;
}

static void write_bound(const char *key, uint64_t ns, struct jsonw *w)
{
	if (ns == UINT64_MAX)
		jsonw_null(w, key);
	else
		jsonw_u64(w, key, ns);
}

static void write_buckets(const struct queue_histogram *h, struct jsonw *w)
{
	jsonw_array(w, "buckets");
	for (unsigned int i = 0; i < QUEUE_BUCKETS; i++) {
		if (!h->waits[i])
			continue;
		jsonw_array(w, NULL);
		write_bound(NULL, queue_histogram_le_ns(i), w);
		jsonw_u64(w, NULL, h->waits[i]);
		jsonw_array_end(w);
	}
	jsonw_array_end(w);
}

void queue_histogram_write(const struct queue_histogram *h, struct jsonw *w)
{
	jsonw_string(w, "unit", "ns");
	write_buckets(h, w);
	jsonw_u64(w, "count", queue_histogram_count(h));
	jsonw_u64(w, "sum", queue_histogram_sum_ns(h));
	write_bound("p50", queue_histogram_percentile_ns(h, 50), w);
	write_bound("p90", queue_histogram_percentile_ns(h, 90), w);
	write_bound("p99", queue_histogram_percentile_ns(h, 99), w);
	jsonw_object(w, "behind_ns");
	for (int i = 0; i < QUEUE_BEHIND_; i++)
		if (h->behind_ns[i])
			jsonw_u64(w, names[i], h->behind_ns[i]);
	jsonw_object_end(w);
}
