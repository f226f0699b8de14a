/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/watch/watch_tree.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/cgroup/lookup_pool.h"
#include "consumer/kernel/iterator.h"
#include "consumer/kernel/map_batch.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Time between lines about a failed walk. */
#define FAILED_EVERY_NS (60 * NSEC_PER_SEC)

/* How soon the loop asks again for a late walk. */
#define LATE_NS (10 * NSEC_PER_MSEC)

/*
 * After a walk without a request, the next one follows this many times its CPU time later: one walk
 * of 20,000 cgroups takes 6 ms, and watches may come and go all the time.
 */
#define PAUSE_TIMES 20

struct tree_walk {
	struct lookup_call call; /* must be the first member */
	int r;
	uint64_t cpu_ns;
	char path[]; /* path of the iterator */
};

static ssize_t pass_over(void *context, const uint8_t *data, size_t bytes)
{
	return (ssize_t)bytes;
}

static void say_failed(struct watches *ws, int error)
{
	uint64_t now_ns = clock_mono_ns();

	if (ws->tree.failed_ns && now_ns - ws->tree.failed_ns < FAILED_EVERY_NS)
		return;
	ws->tree.failed_ns = now_ns;
	event_line_error(
		ws->log->lines, NULL, "watches_full",
		"`trocar-loader load --replace` makes new pins", NULL, NULL,
		"cannot walk the cgroups (%s): cgroups below a watched one that were made before "
		"the watch are not sampled",
		strerror(-error));
}

/* Returns whether some watch lacks cgroups below it: there may be space now. */
static bool lacks_cgroups(const struct watches *ws)
{
	for (uint32_t i = 0; i < ws->pins->abi.slots; i++)
		if (ws->by_slot[i] && ws->pins->slots[i].left_out)
			return true;
	return false;
}

/* Runs in a thread of the pool. The kernel side walks the hierarchy during a read. */
static void run_walk(struct lookup_call *call)
{
	struct tree_walk *walk = (struct tree_walk *)call;

	uint64_t begun_ns = clock_thread_ns();

	walk->r = iterator_read(walk->path, pass_over, NULL);
	walk->cpu_ns = clock_thread_ns() - begun_ns;
}

static void free_walk(struct lookup_call *call)
{
	free(call);
}

static int put_own(const struct watch *w)
{
	/* All cgroups are below the root; its watch is for processes in the root itself. */
	const struct watch_entry entry = { .slot = w->slot,
					   .flags = WATCH_OWN | (w->root ? WATCH_ALONE : 0) };

	return bpf_map_update_elem(w->all->pins->watches_fd, &w->cgroup_id, &entry, BPF_ANY) < 0
		       ? -errno
		       : 0;
}

static struct lookup_pool *pool_of(const struct watches *ws)
{
	return ws->log->cgroups->lookups;
}

static int begin_walk(struct watches *ws)
{
	const char *path = ws->pins->watch_tree_path;
	size_t bytes = path ? strlen(path) + 1 : 0;
	struct tree_walk *walk = path ? malloc(sizeof(*walk) + bytes) : NULL;
	int r;

	if (!walk)
		return path ? -ENOMEM : -ENOENT;
	walk->call = (struct lookup_call){ .run = run_walk,
					   .free = free_walk,
					   .owner = LOOKUP_POOL_AGENT };
	memcpy(walk->path, path, bytes);
	r = lookup_pool_start(pool_of(ws), &walk->call);
	if (r < 0)
		return r;
	ws->tree.running = walk;
	ws->tree.due = false;
	ws->tree.begun++;
	return 0;
}

/*
 * While the main thread enters a watch, a walk may still read the old entry: the element of the
 * hash table that it looked up may be another key's by then, or the entry that it deletes is not
 * the entry that it read. So a watch that was entered during the walk is entered again.
 */
static void enter_again(const struct watches *ws)
{
	for (uint32_t i = 0; i < ws->pins->abi.slots; i++) {
		const struct watch *w = ws->by_slot ? ws->by_slot[i] : NULL;

		if (w && w->tree_walk == ws->tree.begun)
			(void)put_own(w); /* it was there before */
	}
}

/* Waits briefly for the running walk, and ends it. False if it is late. */
static bool end_walk(struct watches *ws)
{
	struct tree_walk *walk = ws->tree.running;

	if (lookup_pool_wait_turn(pool_of(ws), &walk->call) < 0) {
		loop_timer_set(ws->tree_timer, LATE_NS, 0);
		return false;
	}
	ws->tree.running = NULL;
	ws->tree.ended = ws->tree.begun;
	ws->tree.due_ns = clock_mono_ns() + PAUSE_TIMES * walk->cpu_ns;
	if (walk->r < 0)
		say_failed(ws, walk->r);
	free(walk);
	enter_again(ws);
	if (ws->tree.wanted)
		schedule_scan_soon(ws->schedule);
	ws->tree.wanted = false;
	return true;
}

void watch_tree_settle(struct watches *ws)
{
	int r;

	if (ws->tree.running && !end_walk(ws))
		return;
	if (!ws->tree.due && (clock_mono_ns() < ws->tree.due_ns || !lacks_cgroups(ws)))
		return;
	r = begin_walk(ws);
	if (r < 0)
		say_failed(ws, r);
	else
		end_walk(ws);
}

void watch_tree_done(struct watches *ws)
{
	if (ws->tree.running)
		lookup_pool_abandon(pool_of(ws), &ws->tree.running->call);
	free(ws->tree.frees);
	ws->tree = (struct tree_walks){};
}

bool watch_tree_is_free(const struct watches *ws, uint32_t slot)
{
	return ws->tree.frees[slot] <= ws->tree.ended;
}

static void on_tree(void *context, uint32_t events)
{
	struct watches *ws = context;
	uint64_t now_ns = clock_mono_ns();

	if (!ws->tree.running && now_ns < ws->tree.due_ns)
		loop_timer_set(ws->tree_timer, ws->tree.due_ns - now_ns, 0);
	else
		watch_tree_settle(ws);
}

int watch_tree_listen(struct watches *ws, struct loop *loop)
{
	return loop_timer(loop, on_tree, ws, &ws->tree_timer);
}

/* Walks in the next iteration of the loop: hundreds of watches may come and go in one iteration. */
static void settle_soon(struct watches *ws)
{
	if (!ws->tree.due && !ws->tree.running)
		loop_timer_set(ws->tree_timer, 1, 0);
	ws->tree.due = true;
}

/*
 * Returns whether there is no watch above `w` and no cgroup below it: then no walk is needed. A
 * cgroup that is made later finds the entry of `w` as it is now; a cgroup that is being made is
 * counted in nr_descendants before the kernel side looks (cgroup_create of kernel/cgroup/cgroup.c).
 */
static bool stands_alone(const struct watch *w)
{
	const struct watches *ws = w->all;
	char text[1024];
	int r;

	if (w->root)
		return true;
	if (ws->pins->slots[w->slot].outer)
		return false;
	r = cgroups_read(ws->log->cgroups, w->path, "cgroup.stat", text, sizeof(text));
	return r < 0 ? cgroupfs_vanished(r) : strstr(text, "nr_descendants 0\n") != NULL;
}

int watch_tree_clear(const struct pinned_maps *pins)
{
	return map_batch_clear(pins->watches_fd, sizeof(uint64_t));
}

static bool find_entry(const struct watches *ws, uint64_t cgroup_id, struct watch_entry *ret_entry)
{
	return bpf_map_lookup_elem(ws->pins->watches_fd, &cgroup_id, ret_entry) == 0 &&
	       ret_entry->slot < ws->pins->abi.slots;
}

uint32_t watch_tree_outer(const struct watches *ws, uint64_t cgroup_id)
{
	struct watch_entry entry;

	return find_entry(ws, cgroup_id, &entry) && ws->by_slot[entry.slot] ? entry.slot + 1 : 0;
}

int watch_tree_enter(struct watch *w)
{
	const struct tree_walks *tree = &w->all->tree;
	int r = put_own(w);

	if (r < 0)
		return r;
	w->tree_walk = tree->running ? tree->begun : 0;
	if (!stands_alone(w))
		settle_soon(w->all);
	return 0;
}

void watch_tree_leave(struct watch *w)
{
	const struct watch_entry entry = { .slot = w->slot };
	int fd = w->all->pins->watches_fd;

	/* The watch above it continues through its slot. A removed cgroup has no entry any more. */
	if (w->all->pins->slots[w->slot].outer)
		bpf_map_update_elem(fd, &w->cgroup_id, &entry, BPF_EXIST);
	else
		bpf_map_delete_elem(fd, &w->cgroup_id);
	if (stands_alone(w))
		return;
	settle_soon(w->all);
	w->all->tree.frees[w->slot] = w->all->tree.begun + 1;
}

struct watch *watch_tree_find(const struct watches *ws, uint64_t cgroup_id)
{
	struct watch *w = idmap_get(&ws->by_cgroup, cgroup_id);
	struct watch_entry entry;

	if (w || !find_entry(ws, cgroup_id, &entry))
		return w;
	w = ws->by_slot[entry.slot];
	return w && !w->root ? w : NULL;
}

struct watch *watch_tree_above(const struct watch *w)
{
	const struct watches *ws = w->all;
	uint32_t outer = ws->pins->slots[w->slot].outer;

	return outer && outer <= ws->pins->abi.slots ? ws->by_slot[outer - 1] : NULL;
}
