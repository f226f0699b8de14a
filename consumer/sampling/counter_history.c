/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/counter_history.h"

#include <stddef.h>

/* Returns the point that is `age` points older than the newest. */
static const struct counter_point *find_point(const struct counter_history *h, uint32_t age)
{
	return &h->points[(h->newest + COUNTER_POINTS - age) % COUNTER_POINTS];
}

bool counter_history_wants(const struct counter_history *h, uint64_t now_ns)
{
	return !h->count || now_ns - find_point(h, 0)->time_ns >= COUNTER_APART_NS;
}

void counter_history_add(struct counter_history *h, uint64_t time_ns,
			 const struct slot_counters *sum)
{
	h->newest = (h->newest + 1) % COUNTER_POINTS;
	h->points[h->newest] = (struct counter_point){ .time_ns = time_ns, .sum = *sum };
	h->count = MIN(h->count + 1, (uint32_t)COUNTER_POINTS);
}

const struct counter_point *counter_history_until(const struct counter_history *h, uint64_t time_ns)
{
	for (uint32_t age = 0; age < h->count; age++)
		if (find_point(h, age)->time_ns <= time_ns)
			return find_point(h, age);
	return h->count ? find_point(h, h->count - 1) : NULL;
}

const struct counter_point *counter_history_from(const struct counter_history *h, uint64_t time_ns)
{
	for (uint32_t age = h->count; age-- > 0;)
		if (find_point(h, age)->time_ns >= time_ns)
			return find_point(h, age);
	return NULL;
}
