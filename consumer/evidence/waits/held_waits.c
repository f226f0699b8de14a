/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/waits/held_waits.h"

#include <stdlib.h>

#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"

#define NONE SIZE_MAX

void held_waits_add(struct held_waits *h, const struct held_wait *wait)
{
	if (array_reserve(&h->items, &h->space, h->count + 1, sizeof(*h->items)) < 0)
		return;
	h->items[h->count++] = *wait;
}

void held_waits_done(struct held_waits *h)
{
	free(h->items);
	*h = (struct held_waits){ 0 };
}

static int by_tid(const void *a, const void *b)
{
	const struct held_wait *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* Returns the wait of the thread that holds the lock of wait `i`; NONE if that does not wait. */
static size_t find_holder(const struct held_waits *h, size_t i)
{
	const struct held_wait key = { .tid = h->items[i].holder };
	const struct held_wait *found =
		bsearch(&key, h->items, h->count, sizeof(*h->items), by_tid);

	return found ? (size_t)(found - h->items) : NONE;
}

/* For each wait: the way that reached it first, from 1, and the first wait of its circle, plus 1.
 */
struct ways {
	uint32_t way, circle; /* circle 0: the way ends */
};

/* Follows the holders from wait `i`, and sets the circle of all waits on the way. */
static void follow_holders(const struct held_waits *h, struct ways *ways, size_t i)
{
	uint32_t way = (uint32_t)i + 1, circle = 0;
	size_t at = i;

	while (at != NONE && !ways[at].way) {
		ways[at].way = way;
		at = find_holder(h, at);
	}
	if (at != NONE)
		circle = ways[at].way == way ? (uint32_t)at + 1 : ways[at].circle;
	for (at = i; at != NONE && ways[at].way == way && !ways[at].circle && circle;
	     at = find_holder(h, at))
		ways[at].circle = circle;
}

/* Returns the circle that most waits lead into, plus 1; 0: there is none. */
static uint32_t find_largest(const struct ways *ways, size_t count, uint32_t *sums)
{
	uint32_t best = 0;

	for (size_t i = 0; i < count; i++)
		if (ways[i].circle && ++sums[ways[i].circle] > sums[best])
			best = ways[i].circle;
	return best;
}

size_t held_waits_find_cycle(struct held_waits *h,
			     const struct held_wait *ret_cycle[HELD_WAITS_CYCLE])
{
	_cleanup_free_ struct ways *ways = calloc(h->count + 1, sizeof(*ways));
	_cleanup_free_ uint32_t *sums = calloc(h->count + 1, sizeof(*sums));
	size_t n = 0, at;
	uint32_t circle;

	if (!ways || !sums || !h->count)
		return 0;
	qsort(h->items, h->count, sizeof(*h->items), by_tid);
	for (size_t i = 0; i < h->count; i++)
		if (!ways[i].way)
			follow_holders(h, ways, i);
	circle = find_largest(ways, h->count, sums);
	for (size_t i = 0; i < h->count; i++)
		h->items[i].deadlocked = circle && ways[i].circle == circle;
	if (!circle)
		return 0;
	at = circle - 1;
	do {
		if (n < HELD_WAITS_CYCLE)
			ret_cycle[n] = &h->items[at];
		n++;
		at = find_holder(h, at);
	} while (at != circle - 1);
	return n;
}

uint64_t held_waits_deadlocked_ns(const struct held_waits *h)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < h->count; i++)
		if (h->items[i].deadlocked)
			ns += h->items[i].ns;
	return ns;
}

bool held_waits_is_deadlocked(const struct held_waits *h, uint32_t tgid, uint64_t address)
{
	for (size_t i = 0; address && i < h->count; i++)
		if (h->items[i].deadlocked && h->items[i].address == address &&
		    (!tgid || h->items[i].stack->tgid == tgid))
			return true;
	return false;
}
