/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/watch/watch_tree.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "consumer/kernel/iterator.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Time between lines that say that a walk failed. */
#define FAILED_EVERY_NS (60 * NSEC_PER_SEC)

static ssize_t pass_over(void *context, const uint8_t *data, size_t bytes)
{
	return (ssize_t)bytes;
}

static void say_failed(struct watches *ws, int error)
{
	uint64_t now_ns = clock_mono_ns();

	if (ws->tree_failed_ns && now_ns - ws->tree_failed_ns < FAILED_EVERY_NS)
		return;
	ws->tree_failed_ns = now_ns;
	event_line_error(ws->log->lines, NULL, "watches_full",
			 "`trocar-loader load --replace` makes the pins anew", NULL, NULL,
			 "cannot walk the cgroups (%s): those below a watched one, made before it "
			 "was watched, are not sampled",
			 strerror(-error));
}

/* Returns whether some watch lacks cgroups below it: there may be room now. */
static bool lacks_cgroups(const struct watches *ws)
{
	for (uint32_t i = 0; i < ws->pins->abi.slots; i++)
		if (ws->by_slot[i] && ws->pins->slots[i].left_out)
			return true;
	return false;
}

void watch_tree_settle(struct watches *ws)
{
	int r;

	if (!ws->tree_due && !lacks_cgroups(ws))
		return;
	/* The kernel side walks the hierarchy while somebody reads, and writes nothing. */
	r = iterator_read(ws->pins->watch_tree_path, pass_over, NULL);
	if (r < 0)
		say_failed(ws, r);
	ws->tree_due = ws->tree_freed = false;
}

static void on_tree(void *context, uint32_t events)
{
	watch_tree_settle(context);
}

int watch_tree_listen(struct watches *ws, struct loop *loop)
{
	return loop_timer(loop, on_tree, ws, &ws->tree_timer);
}

/* Walks in the next turn of the loop: watches come and go by the hundred in one turn. */
static void settle_soon(struct watches *ws)
{
	if (!ws->tree_due)
		loop_timer_set(ws->tree_timer, 1, 0);
	ws->tree_due = true;
}

/*
 * Returns whether no watch is around `w` and no cgroup below it: then there is nothing to walk for.
 * A cgroup that is made later finds the entry of `w` as it is now; one that is being made is
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
	uint64_t id, next;
	bool more = bpf_map_get_next_key(pins->watches_fd, NULL, &id) == 0;

	while (more) {
		more = bpf_map_get_next_key(pins->watches_fd, &id, &next) == 0;
		if (bpf_map_delete_elem(pins->watches_fd, &id) < 0 && errno != ENOENT)
			return -errno;
		id = next;
	}
	return 0;
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
	/* All cgroups are below the root, whose watch is for processes in the root itself. */
	const struct watch_entry entry = { .slot = w->slot,
					   .flags = WATCH_OWN | (w->root ? WATCH_ALONE : 0) };

	if (bpf_map_update_elem(w->all->pins->watches_fd, &w->cgroup_id, &entry, BPF_ANY) < 0)
		return -errno;
	if (!stands_alone(w))
		settle_soon(w->all);
	return 0;
}

void watch_tree_leave(struct watch *w)
{
	const struct watch_entry entry = { .slot = w->slot };
	int fd = w->all->pins->watches_fd;

	/* The watch around it goes on through its slot. A removed cgroup has no entry any more. */
	if (w->all->pins->slots[w->slot].outer)
		bpf_map_update_elem(fd, &w->cgroup_id, &entry, BPF_EXIST);
	else
		bpf_map_delete_elem(fd, &w->cgroup_id);
	if (stands_alone(w))
		return;
	settle_soon(w->all);
	w->all->tree_freed = true;
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
