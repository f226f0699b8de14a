/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/locks/condition_locks.h"

#include <stdlib.h>

#include "consumer/sampling/wait_kind.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"

void condition_locks_init(struct condition_locks *c)
{
	*c = (struct condition_locks){};
	idmap_init(&c->by_hash, CONDITION_LOCKS_MAX);
}

void condition_locks_done(struct condition_locks *c)
{
	idmap_done(&c->by_hash);
	free(TAKE_PTR(c->rows));
	c->count = c->space = 0;
}

static uint64_t key_of(uint32_t tgid, uint64_t address)
{
	uint64_t key = (address ^ (uint64_t)tgid << 40) * 0x9e3779b97f4a7c15ULL;

	return key ? key : 1;
}

/* Two locks with the same hash share a row: the row of the first. */
static struct condition_lock *find_row(const struct condition_locks *c, uint32_t tgid,
				       uint64_t address)
{
	size_t number = (size_t)(uintptr_t)idmap_get(&c->by_hash, key_of(tgid, address));
	struct condition_lock *row = number ? &c->rows[number - 1] : NULL;

	return row && row->tgid == tgid && row->address == address ? row : NULL;
}

static struct condition_lock *make_row(struct condition_locks *c, uint32_t tgid, uint64_t address)
{
	uint64_t key = key_of(tgid, address);

	if (idmap_get(&c->by_hash, key))
		return NULL;
	if (array_reserve(&c->rows, &c->space, c->count + 1, sizeof(*c->rows)) < 0)
		return NULL;
	if (idmap_put(&c->by_hash, key, (void *)(uintptr_t)(c->count + 1)) < 0)
		return NULL;
	c->rows[c->count] = (struct condition_lock){ .tgid = tgid, .address = address };
	return &c->rows[c->count++];
}

void condition_locks_add(struct condition_locks *c, const struct stack *stack,
			 const struct known_wait *wait)
{
	struct condition_lock *row;

	if (stack->phase != PHASE_DURING || stack->wait != WAIT_BLOCKED + WAIT_LOCK || !wait->on ||
	    !wait->on->address)
		return;
	row = find_row(c, stack->tgid, wait->on->address);
	if (!row)
		row = make_row(c, stack->tgid, wait->on->address);
	if (!row)
		return;
	row->ns += stack->weight_ns;
	row->condition_ns += wait->condition ? stack->weight_ns : 0;
}

void condition_locks_mark(const struct condition_locks *c, struct lock_waits *locks)
{
	for (size_t i = 0; i < locks->count; i++) {
		struct lock_waited *l = &locks->items[i];
		const struct condition_lock *row = find_row(c, l->lock.tgid, l->lock.address);

		l->condition = row && row->condition_ns * 2 > row->ns;
		if (l->condition && l->pattern != LOCK_PATTERN_HERD)
			l->pattern = LOCK_PATTERN_NONE;
	}
}
