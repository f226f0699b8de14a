/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_objects.h"
#include "consumer/signals/pool_name.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/*
 * Widths that a person can count with. Off-CPU samples are 50 ms apart: narrower slots would be
 * empty.
 */
static const uint32_t widths_ms[] = { 50, 100, 200, 500, 1000, 2000 };

static uint32_t count_slots(uint32_t ms, uint32_t width_ms)
{
	return (ms + width_ms - 1) / width_ms;
}

struct timeline *timeline_new(uint64_t start_ns, uint32_t pre_ms, uint32_t during_ms)
{
	struct timeline *t = calloc(1, sizeof(*t));
	size_t i = 0;

	if (!t)
		return NULL;
	while (i < ARRAY_SIZE(widths_ms) - 1 &&
	       count_slots(pre_ms, widths_ms[i]) + count_slots(during_ms, widths_ms[i]) >
		       TIMELINE_SLOTS)
		i++;
	t->slot_ns = widths_ms[i] * NSEC_PER_MSEC;
	t->before = MIN(count_slots(pre_ms, widths_ms[i]), (uint32_t)TIMELINE_SLOTS);
	t->slots =
		MIN(t->before + count_slots(during_ms, widths_ms[i]), (uint32_t)TIMELINE_SLOTS) + 1;
	t->from_ns = start_ns - MIN(start_ns, t->before * t->slot_ns);
	idmap_init(&t->by_hash, TIMELINE_POOLS);
	return t;
}

static void free_rows(struct timeline_pool *pool)
{
	for (int i = 0; i < ACCOUNT_PARTS_; i++)
		free(pool->ns[i]);
}

void timeline_free(struct timeline *t)
{
	struct timeline_pool *pool, *next;
	uint64_t hash;

	if (!t)
		return;
	idmap_for_each (&t->by_hash, i, hash, pool) {
		for (; pool; pool = next) {
			next = pool->next;
			free_rows(pool);
			free(pool);
		}
	}
	idmap_done(&t->by_hash);
	free_rows(&t->rest);
	free(t);
}

static uint64_t hash_pool(const struct stack_sample *h, const char *name)
{
	uint64_t hash = idmap_text_key(name) ^ h->start_ns * 0x9e3779b97f4a7c15ULL ^ h->tgid;

	return hash ? hash : 1;
}

/* Adds a missing pool; NULL without space. */
static struct timeline_pool *add_pool(struct timeline *t, const struct stack_sample *h,
				      const char name[COMM_BYTES], uint64_t hash)
{
	struct timeline_pool *pool = t->count < TIMELINE_POOLS ? calloc(1, sizeof(*pool)) : NULL;

	if (!pool)
		return NULL;
	pool->tgid = h->tgid;
	pool->start_ns = h->start_ns;
	memcpy(pool->name, name, COMM_BYTES);
	pool->next = idmap_get(&t->by_hash, hash);
	if (idmap_put(&t->by_hash, hash, pool) < 0) {
		free(pool);
		return NULL;
	}
	t->count++;
	return pool;
}

struct timeline_pool *timeline_pool(struct timeline *t, const struct stack_sample *h)
{
	char name[COMM_BYTES];
	struct timeline_pool *pool;
	uint64_t hash;

	if (!t)
		return NULL;
	pool_name_of(h->comm, name);
	hash = hash_pool(h, name);
	for (pool = idmap_get(&t->by_hash, hash); pool; pool = pool->next)
		if (pool->tgid == h->tgid && pool->start_ns == h->start_ns &&
		    !memcmp(pool->name, name, COMM_BYTES))
			return pool;
	pool = add_pool(t, h, name, hash);
	return pool ? pool : &t->rest;
}

/* Returns the row, creating it if needed; NULL without space. */
static uint64_t *get_row(struct timeline *t, struct timeline_pool *pool, enum account_part part)
{
	bool is_rest = pool == &t->rest;

	if (pool->ns[part])
		return pool->ns[part];
	if (!is_rest && t->rows >= TIMELINE_ROWS)
		return NULL;
	pool->ns[part] = calloc(t->slots, sizeof(uint64_t));
	t->rows += pool->ns[part] && !is_rest;
	return pool->ns[part];
}

void timeline_add(struct timeline *t, struct timeline_pool *pool, enum account_part part,
		  uint64_t from_ns, uint64_t to_ns)
{
	uint64_t end_ns, *row;

	if (!t || !pool)
		return;
	end_ns = t->from_ns + t->slots * t->slot_ns;
	from_ns = MAX(from_ns, t->from_ns);
	to_ns = MIN(to_ns, end_ns);
	if (from_ns >= to_ns)
		return;
	row = get_row(t, pool, part);
	t->crowded += !row || pool == &t->rest;
	if (!row)
		row = get_row(t, &t->rest, part);
	if (!row) {
		t->left_out++;
		return;
	}
	for (uint64_t at = (from_ns - t->from_ns) / t->slot_ns; from_ns < to_ns; at++) {
		uint64_t until_ns = MIN(to_ns, t->from_ns + (at + 1) * t->slot_ns);

		row[at] += until_ns - from_ns;
		from_ns = until_ns;
	}
}

enum account_part timeline_part(uint8_t state, const struct look_on *on)
{
	uint8_t judged = wait_objects_state(state, on);

	if (judged >= WAIT_BLOCKED && judged != WAIT_BLOCKED + WAIT_SLEEP &&
	    wait_objects_is_idle(judged, on))
		return ACCOUNT_IDLE;
	/* Both have the same kinds in the same order (wait_kind.c). */
	return (enum account_part)(judged - WAIT_FOR_CPU + ACCOUNT_QUEUE);
}

void timeline_look(struct timeline *t, uint64_t ns)
{
	if (t && ns >= t->from_ns && ns < t->from_ns + t->slots * t->slot_ns)
		t->looks[(ns - t->from_ns) / t->slot_ns]++;
}
