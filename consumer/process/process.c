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

/* Searches the whole queue: it is short because each drain empties it. */
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

static void free_process(void *value)
{
	struct process *p = value;

	mappings_done(&p->maps);
	mappings_done(&p->before);
	free(p);
}

/* Releases the perf map of a process with compiled code. */
static void leave_perf_map(struct processes *all, const struct process *p)
{
	struct process_key key = process_key(p);

	if (p->compiled)
		perf_map_files_leave(all->perf_map_files, &key);
}

/* Returns when the process ended or left; 0: it is needed. */
static uint64_t unneeded_ns(const struct process *p)
{
	return p->gone_ns ? p->gone_ns : p->left_ns;
}

/* Appends a process after those that ended or left earlier. */
static void append_gone(struct processes *all, struct process *p)
{
	p->previous_gone = all->last_gone;
	p->next_gone = NULL;
	*(all->last_gone ? &all->last_gone->next_gone : &all->first_gone) = p;
	all->last_gone = p;
	all->gone++;
}

static void remove_gone(struct processes *all, struct process *p)
{
	*(p->previous_gone ? &p->previous_gone->next_gone : &all->first_gone) = p->next_gone;
	*(p->next_gone ? &p->next_gone->previous_gone : &all->last_gone) = p->previous_gone;
	p->previous_gone = p->next_gone = NULL;
	all->gone--;
}

/* Frees the process that ended or left first. */
static void drop_first_gone(struct processes *all)
{
	struct process *p = all->first_gone;

	remove_gone(all, p);
	if (!p->gone_ns)
		leave_perf_map(all, p);
	idmap_remove(&all->by_id, p->id);
	unqueue_process(all, p);
	free_process(p);
}

void processes_done(struct processes *all)
{
	idmap_free(&all->by_id, free_process);
	all->first_read = all->last_read = NULL;
	all->first_gone = all->last_gone = NULL;
}

struct process *process_find(struct processes *all, uint32_t tgid, uint64_t start_ns)
{
	struct process *p = idmap_get(&all->by_id, hash_key(tgid, start_ns));

	return p && p->tgid == tgid && p->start_ns == start_ns ? p : NULL;
}

void processes_sweep(struct processes *all, uint64_t now_ns)
{
	bool crowded = all->gone > PROCESS_GONE_MAX;
	uint64_t linger_ns = (crowded ? PROCESS_LINGER_MS / 8 : PROCESS_LINGER_MS) * NSEC_PER_MSEC;

	while (all->first_gone && now_ns > unneeded_ns(all->first_gone) + linger_ns)
		drop_first_gone(all);
}

/*
 * Adds a process. If the table is full, frees the process that ended or left first, so that a start
 * is always seen.
 */
static int put_process(struct processes *all, struct process *p)
{
	int r = idmap_put(&all->by_id, p->id, p);

	if (r != -ENOSPC || !all->first_gone)
		return r;
	drop_first_gone(all);
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
	append_gone(all, p);
	leave_perf_map(all, p);
}

void process_left(struct processes *all, struct process *p)
{
	if (unneeded_ns(p))
		return;
	p->left_ns = clock_mono_ns();
	append_gone(all, p);
}

void process_back(struct processes *all, struct process *p)
{
	if (!p->left_ns)
		return;
	p->left_ns = 0;
	remove_gone(all, p);
}
