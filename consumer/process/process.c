/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/process.h"

#include <errno.h>
#include <stdlib.h>

#include "consumer/jit/perf_map_files.h"
#include "consumer/output/event_budget.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* The finaliser of splitmix64: spreads (tgid, start) over the table; never 0. */
static uint64_t hash_key(uint32_t tgid, uint64_t start_ns)
{
	uint64_t x = start_ns ^ ((uint64_t)tgid << 42);

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return x ? x : 1;
}

void processes_init(struct processes *all, size_t max, struct perf_map_files *perf_map_files)
{
	*all = (struct processes){ .perf_map_files = perf_map_files };
	idmap_init(&all->by_id, max);
}

void process_queue_read(struct processes *all, struct process *p)
{
	if (p->queued)
		return;
	p->queued = true;
	p->next_read = NULL;
	*(all->last_read ? &all->last_read->next_read : &all->first_read) = p;
	all->last_read = p;
}

struct process *process_take_read(struct processes *all)
{
	struct process *p = all->first_read;

	if (!p)
		return NULL;
	all->first_read = p->next_read;
	if (!all->first_read)
		all->last_read = NULL;
	p->next_read = NULL;
	p->queued = false;
	return p;
}

/* Searches the whole queue: it is short, because it is emptied after each drain. */
static void unqueue_process(struct processes *all, const struct process *p)
{
	struct process *previous = NULL;

	if (!p->queued)
		return;
	for (struct process *i = all->first_read; i != p; i = i->next_read)
		previous = i;
	*(previous ? &previous->next_read : &all->first_read) = p->next_read;
	if (all->last_read == p)
		all->last_read = previous;
}

static void free_process(struct process *p)
{
	mappings_done(&p->maps);
	mappings_done(&p->before);
	free(p);
}

/* Lets the perf map of a process with compiled code go. */
static void leave_perf_map(struct processes *all, const struct process *p)
{
	struct process_key key = process_key(p);

	if (p->compiled)
		perf_map_files_leave(all->perf_map_files, &key);
}

/* Returns since when nobody needs the process; 0: somebody does. */
static uint64_t unneeded_ns(const struct process *p)
{
	return p->gone_ns ? p->gone_ns : p->left_ns;
}

static void drop_process(struct processes *all, struct process *p)
{
	idmap_remove(&all->by_id, p->id);
	if (unneeded_ns(p))
		all->gone--;
	if (!p->gone_ns)
		leave_perf_map(all, p);
	unqueue_process(all, p);
	free_process(p);
}

void processes_done(struct processes *all)
{
	struct process *p;
	uint64_t id;

	idmap_for_each (&all->by_id, i, id, p)
		free_process(p);
	idmap_done(&all->by_id);
	all->first_read = all->last_read = NULL;
}

struct process *process_find(struct processes *all, uint32_t tgid, uint64_t start_ns)
{
	struct process *p = idmap_get(&all->by_id, hash_key(tgid, start_ns));

	return p && p->tgid == tgid && p->start_ns == start_ns ? p : NULL;
}

/* Frees the processes that ended or left more than linger_ns ago. */
static void sweep_gone(struct processes *all, uint64_t now_ns, uint64_t linger_ns)
{
	struct process *p, **old;
	size_t n = 0;
	uint64_t id;

	if (!all->gone)
		return;
	old = calloc(all->gone, sizeof(struct process *));
	if (!old)
		return;
	idmap_for_each (&all->by_id, i, id, p)
		if (unneeded_ns(p) && now_ns - unneeded_ns(p) > linger_ns && n < all->gone)
			old[n++] = p;
	while (n)
		drop_process(all, old[--n]);
	free(old);
}

void processes_sweep(struct processes *all, uint64_t now_ns)
{
	bool crowded = all->gone > PROCESS_GONE_MAX;

	sweep_gone(all, now_ns,
		   (crowded ? PROCESS_LINGER_MS / 8 : PROCESS_LINGER_MS) * NSEC_PER_MSEC);
}

/*
 * Adds a process. When the table is full, frees those that have ended or left first, so that a
 * start is always seen.
 */
static int put_process(struct processes *all, struct process *p)
{
	int r = idmap_put(&all->by_id, p->id, p);

	if (r != -ENOSPC || !all->gone)
		return r;
	sweep_gone(all, clock_mono_ns(), 0);
	return idmap_put(&all->by_id, p->id, p);
}

int process_get(struct processes *all, uint32_t tgid, uint64_t start_ns,
		struct process **ret_process)
{
	struct process *p = process_find(all, tgid, start_ns);
	int r;

	if (p) {
		*ret_process = p;
		return 0;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct process){
		.id = hash_key(tgid, start_ns),
		.tgid = tgid,
		.start_ns = start_ns,
		.uid = UID_UNKNOWN,
		.seen_ns = clock_mono_ns(),
	};
	if (idmap_get(&all->by_id, p->id)) {
		free(p);
		return -EEXIST;
	}
	r = put_process(all, p);
	if (r < 0) {
		free(p);
		return r;
	}
	*ret_process = p;
	return 0;
}

void process_gone(struct processes *all, struct process *p)
{
	if (p->gone_ns)
		return;
	process_back(all, p);
	p->gone_ns = clock_mono_ns();
	all->gone++;
	leave_perf_map(all, p);
}

void process_left(struct processes *all, struct process *p)
{
	if (unneeded_ns(p))
		return;
	p->left_ns = clock_mono_ns();
	all->gone++;
}

void process_back(struct processes *all, struct process *p)
{
	if (!p->left_ns)
		return;
	p->left_ns = 0;
	all->gone--;
}
