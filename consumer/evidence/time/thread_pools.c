/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/thread_pools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/signals/pool_name.h"
#include "shared/tools/array.h"
#include "shared/tools/macro.h"

static const char *const parts[] = {
#define PART(id, json, help) [ACCOUNT_##id] = (json),
#include "shared/abi/account_parts.def"
#undef PART
};
_Static_assert(ARRAY_SIZE(parts) == ACCOUNT_PARTS_, "a row per part");

const char *thread_pools_part(enum account_part part)
{
	return parts[part];
}

uint64_t thread_pools_waited_ns(const struct thread_pool *pool)
{
	uint64_t sum_ns = 0;

	for (int i = ACCOUNT_QUEUE + 1; i < ACCOUNT_PARTS_; i++)
		sum_ns += pool->part_ns[i];
	return sum_ns;
}

/* Sorts by process, then by name without digits. */
static int compare_threads(const void *a, const void *b)
{
	const struct thread_account *x = a, *y = b;
	char name_x[COMM_BYTES], name_y[COMM_BYTES];

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	pool_name_of(x->comm, name_x);
	pool_name_of(y->comm, name_y);
	return memcmp(name_x, name_y, COMM_BYTES);
}

/* Adds the sums of `more`, and takes its longest wait if that is longer. */
static void add_pool(struct thread_pool *to, const struct thread_pool *more)
{
	to->pools += more->pools;
	to->threads += more->threads;
	to->born += more->born;
	to->arrived += more->arrived;
	to->ended += more->ended;
	to->left += more->left;
	to->wall_ns += more->wall_ns;
	to->unaccounted_ns += more->unaccounted_ns;
	to->open_ns += more->open_ns;
	for (int i = 0; i < ACCOUNT_PARTS_; i++)
		to->part_ns[i] += more->part_ns[i];
	queue_histogram_merge(&to->queue, &more->queue);
	if (more->longest_ns <= to->longest_ns)
		return;
	to->longest_ns = more->longest_ns;
	to->longest_kind = more->longest_kind;
	to->longest_tid = more->longest_tid;
	memcpy(to->longest_comm, more->longest_comm, COMM_BYTES);
}

/* Makes a pool of one thread. */
static void make_pool(const struct thread_account *t, struct thread_pool *ret_pool)
{
	*ret_pool = (struct thread_pool){
		.tgid = t->tgid,
		.start_ns = t->start_ns,
		.threads = 1,
		.born = t->fate & THREAD_BORN ? 1 : 0,
		.arrived = t->fate & THREAD_ARRIVED ? 1 : 0,
		.ended = t->fate & THREAD_ENDED ? 1 : 0,
		.left = t->fate & THREAD_LEFT ? 1 : 0,
		.wall_ns = t->wall_ns,
		.unaccounted_ns = t->unaccounted_ns,
		.open_ns = t->open_ns,
		.longest_ns = t->longest_ns,
		.longest_kind = t->longest_kind,
		.longest_tid = t->tid,
	};
	queue_histogram_add(&ret_pool->queue, &t->queue);
	pool_name_of(t->comm, ret_pool->name);
	memcpy(ret_pool->part_ns, t->part_ns, sizeof(t->part_ns));
	memcpy(ret_pool->longest_comm, t->comm, COMM_BYTES);
}

/* Sorts the most time first; equal times by process and name. */
static int compare_pools(const void *a, const void *b)
{
	const struct thread_pool *x = a, *y = b;

	if (x->wall_ns != y->wall_ns)
		return x->wall_ns < y->wall_ns ? 1 : -1;
	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return memcmp(x->name, y->name, COMM_BYTES);
}

/* Merges all pools after the named ones into one. */
static void merge_rest(struct thread_pools *p)
{
	struct thread_pool rest = {};

	if (p->count <= THREAD_POOLS_NAMED + 1)
		return;
	for (size_t i = THREAD_POOLS_NAMED; i < p->count; i++)
		add_pool(&rest, &p->items[i]);
	p->items[THREAD_POOLS_NAMED] = rest;
	p->count = THREAD_POOLS_NAMED + 1;
}

int thread_pools_make(struct thread_accounts *accounts, struct thread_pools *ret_pools)
{
	struct thread_pools p = {};

	p.items = calloc(MAX(accounts->count, (size_t)1), sizeof(*p.items));
	if (!p.items)
		return -ENOMEM;
	array_sort(accounts->items, accounts->count, sizeof(*accounts->items), compare_threads);
	for (size_t i = 0; i < accounts->count; i++) {
		const struct thread_account *t = &accounts->items[i];
		struct thread_pool one;

		make_pool(t, &one);
		add_pool(&p.all, &one);
		if (i == 0 || compare_threads(t - 1, t) != 0) {
			one.pools = 1;
			p.items[p.count++] = one;
		} else {
			add_pool(&p.items[p.count - 1], &one);
		}
	}
	p.all.pools = p.count;
	array_sort(p.items, p.count, sizeof(*p.items), compare_pools);
	merge_rest(&p);
	*ret_pools = p;
	return 0;
}

void thread_pools_done(struct thread_pools *pools)
{
	free(pools->items);
	*pools = (struct thread_pools){};
}

bool thread_pools_find(const struct thread_pools *pools, uint32_t tgid, uint64_t start_ns,
		       const char *comm, size_t *ret_index)
{
	char name[COMM_BYTES];

	pool_name_of(comm, name);
	for (size_t i = 0; i < pools->count; i++) {
		const struct thread_pool *p = &pools->items[i];

		if (p->tgid && (p->tgid != tgid || (start_ns && p->start_ns != start_ns) ||
				memcmp(p->name, name, COMM_BYTES) != 0))
			continue;
		*ret_index = i;
		return true;
	}
	return false;
}
