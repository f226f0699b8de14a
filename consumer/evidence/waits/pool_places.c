/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/waits/pool_places.h"

#include <stdlib.h>
#include <string.h>

#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_objects.h"
#include "consumer/signals/pool_name.h"
#include "consumer/signals/thresholds.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

void pool_places_init(struct pool_places *p)
{
	*p = (struct pool_places){};
	idmap_init(&p->by_hash, POOL_PLACES_MAX);
}

void pool_places_done(struct pool_places *p)
{
	idmap_done(&p->by_hash);
	free(TAKE_PTR(p->rows));
	p->count = p->space = 0;
}

/*
 * A thread that waits for work, or in an epoll for an answer, would take new work. A sleeping
 * thread would not, though elsewhere sleeping counts as idle.
 */
static bool is_free(const struct known_wait *wait)
{
	return (wait->idle && wait->state != WAIT_BLOCKED + WAIT_SLEEP) ||
	       (wait->on && wait_objects_is_asked(wait->on));
}

static uint64_t key_of(const char pool[COMM_BYTES], const struct known_wait *wait, bool free)
{
	const char *fn = wait->frame && wait->frame->fn ? wait->frame->fn : "";
	char name[COMM_BYTES + 1] = "";
	uint64_t key;

	memcpy(name, pool, COMM_BYTES);
	key = (idmap_text_key(name) * 31 ^ idmap_text_key(fn)) * 0x9e3779b97f4a7c15ULL;
	key ^= wait->state * 2u + free;
	return key ? key : 1;
}

static struct pool_place *make_row(struct pool_places *p, const char pool[COMM_BYTES],
				   const struct known_wait *wait, bool free, uint64_t key)
{
	if (array_reserve(&p->rows, &p->space, p->count + 1, sizeof(*p->rows)) < 0)
		return NULL;
	if (idmap_put(&p->by_hash, key, (void *)(uintptr_t)(p->count + 1)) < 0)
		return NULL;
	p->rows[p->count] = (struct pool_place){ .state = wait->state,
						 .free = free,
						 .fn = wait->frame ? wait->frame->fn : NULL };
	memcpy(p->rows[p->count].pool, pool, COMM_BYTES);
	return &p->rows[p->count++];
}

void pool_places_add(struct pool_places *p, const struct stack *stack,
		     const struct known_wait *wait, bool whole)
{
	bool free = is_free(wait) || !whole;
	char pool[COMM_BYTES];
	struct pool_place *row;
	uint64_t key;
	size_t number;

	if (stack->phase == PHASE_ONSET || (stack->phase == PHASE_BEFORE && !whole))
		return;
	pool_name_of(stack->comm, pool);
	key = key_of(pool, wait, free);
	number = (size_t)(uintptr_t)idmap_get(&p->by_hash, key);
	row = number ? &p->rows[number - 1] : make_row(p, pool, wait, free, key);
	if (!row) {
		p->left_out++;
		return;
	}
	if (!row->ns && !row->calm_ns)
		row->tgid = stack->tgid;
	else if (row->tgid != stack->tgid)
		row->tgid = 0;
	*(stack->phase == PHASE_BEFORE ? &row->calm_ns : &row->ns) += stack->weight_ns;
	if (stack->weight_ns < row->heaviest_ns)
		return;
	row->heaviest_ns = stack->weight_ns;
	row->caller = wait->callers[0];
}

static bool is_of_pool(const struct pool_place *a, const struct pool_place *b)
{
	return !memcmp(a->pool, b->pool, COMM_BYTES);
}

/*
 * Whether threads may have waited for work here in the baseline. A futex or a pipe proves nothing
 * by itself: pool threads wait there for their queue, and also for the results of other threads.
 */
static bool was_free(const struct pool_place *row)
{
	return row->calm_ns && (row->free || row->state == WAIT_BLOCKED + WAIT_LOCK ||
				row->state == WAIT_BLOCKED + WAIT_PIPE);
}

/* Sums up the pool of the threads that waited at `calm` for work. */
static struct pool_starved sum_pool(const struct pool_places *p, const struct pool_place *calm)
{
	struct pool_starved s = { .calm = calm };

	for (size_t i = 0; i < p->count; i++) {
		const struct pool_place *row = &p->rows[i];

		if (!is_of_pool(row, calm))
			continue;
		s.all_ns += row->ns;
		s.calm_all_ns += row->calm_ns;
		if (row->free || was_free(row))
			s.free_ns += row->ns;
		else if (row->state >= WAIT_BLOCKED && (!s.busy || row->ns > s.busy->ns))
			s.busy = row;
	}
	return s;
}

/* Converts a time in a phase of this length to a number of threads, rounded. */
static uint64_t threads_of(uint64_t ns, uint64_t ms)
{
	return (ns + ms * NSEC_PER_MSEC / 2) / (ms * NSEC_PER_MSEC);
}

/* Whether threads that waited there for work no longer do so, and are in one other wait instead. */
static bool is_starved(struct pool_starved *s, uint64_t during_ms, uint64_t calm_ms)
{
	uint64_t waited = threads_of(s->calm->calm_ns, calm_ms);

	s->threads = threads_of(s->all_ns - s->free_ns, during_ms);
	return waited >= 2 && s->busy && s->threads >= waited &&
	       s->calm->ns * 100 * calm_ms <=
		       s->calm->calm_ns * during_ms * THRESHOLD_POOL_FREE_PCT &&
	       s->busy->ns * 100 >= s->all_ns * THRESHOLD_POOL_SAME_PCT;
}

bool pool_places_starved(const struct pool_places *p, uint64_t during_ms, uint64_t calm_ms,
			 struct pool_starved *ret_starved)
{
	uint64_t most = 0;

	for (size_t i = 0; during_ms && calm_ms && i < p->count; i++) {
		struct pool_starved s;

		if (!was_free(&p->rows[i]) || p->rows[i].calm_ns <= most)
			continue;
		s = sum_pool(p, &p->rows[i]);
		if (!is_starved(&s, during_ms, calm_ms))
			continue;
		most = p->rows[i].calm_ns;
		*ret_starved = s;
	}
	return most > 0;
}
