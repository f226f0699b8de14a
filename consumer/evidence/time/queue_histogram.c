/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/queue_histogram.h"

#include "consumer/signals/time_histogram.h"
#include "shared/json/jsonw.h"
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

uint64_t queue_histogram_count(const struct queue_histogram *h)
{
	return time_histogram_count(h->waits);
}

uint64_t queue_histogram_sum_ns(const struct queue_histogram *h)
{
	uint64_t sum_ns = 0;

	for (int i = 0; i < QUEUE_BEHIND_; i++)
		sum_ns += h->behind_ns[i];
	return sum_ns;
}

void queue_histogram_write(const struct queue_histogram *h, struct jsonw *w)
{
	time_histogram_write(h->waits, queue_histogram_sum_ns(h), w);
	jsonw_object(w, "behind_ns");
	for (int i = 0; i < QUEUE_BEHIND_; i++)
		if (h->behind_ns[i])
			jsonw_u64(w, names[i], h->behind_ns[i]);
	jsonw_object_end(w);
}
