/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/queue_blame.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/map_batch.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/kernel/table_share.h"
#include "consumer/signals/slot_nest.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static const char unreadable[] =
	"the kernel's counts of the threads that had the CPUs cannot be read";
static const char one_process[] =
	"the kernel side counts it by cgroup, and the session is of one process";

static int compare_counts(const void *a, const void *b)
{
	const struct queue_count *x = a, *y = b;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->cgroup_id < y->cgroup_id ? -1 : x->cgroup_id > y->cgroup_id;
}

static int read_map(int fd, struct queue_counts *ret_counts)
{
	static const struct map_sizes sizes = { sizeof(struct queue_neighbour), sizeof(uint64_t),
						QUEUE_NEIGHBOURS_MAX };
	_cleanup_free_ struct queue_neighbour *keys = NULL;
	_cleanup_free_ uint64_t *ns = NULL;
	struct queue_counts counts = {};
	uint32_t count;
	int r = map_batch_read(fd, &sizes, &keys, &ns, &count);

	if (r < 0)
		return r;
	counts.items = calloc(MAX(count, 1u), sizeof(*counts.items));
	if (!counts.items)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		counts.items[i] = (struct queue_count){ keys[i].cgroup_id, ns[i], keys[i].slot };
	counts.count = count;
	array_sort(counts.items, count, sizeof(*counts.items), compare_counts);
	*ret_counts = counts;
	return 0;
}

/* Removes the elements of the reading. 0 or -errno. */
static int empty_map(int fd, const struct queue_counts *counts)
{
	for (size_t i = 0; i < counts->count; i++) {
		const struct queue_neighbour key = { .cgroup_id = counts->items[i].cgroup_id,
						     .slot = counts->items[i].slot };

		if (bpf_map_delete_elem(fd, &key) < 0 && errno != ENOENT)
			return -errno;
	}
	return 0;
}

int queue_blame_begin(const struct signal_host *host, bool empty, struct queue_counts *ret_counts)
{
	int fd = host->pins->signal_fd[PINNED_MAP_queue_neighbours];
	struct queue_counts counts = {};
	int r = read_map(fd, &counts);

	if (r == 0 && empty && empty_map(fd, &counts) == 0) {
		table_share_reset(host->pins, TABLE_QUEUE_NEIGHBOURS);
		queue_blame_forget(&counts);
	}
	if (r == 0)
		*ret_counts = counts;
	return r;
}

/* Returns the growth since the begin. */
static uint64_t find_gain(const struct queue_counts *before, const struct queue_count *now)
{
	const struct queue_count *found =
		array_find(now, before->items, before->count, sizeof(*now), compare_counts);

	return found && found->ns <= now->ns ? now->ns - found->ns : now->ns;
}

static int compare_gains(const void *a, const void *b)
{
	const struct queue_count *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return x->cgroup_id < y->cgroup_id ? -1 : 1;
}

static int compare_cgroups(const void *a, const void *b)
{
	const struct queue_count *x = a, *y = b;

	return x->cgroup_id < y->cgroup_id ? -1 : x->cgroup_id > y->cgroup_id;
}

/* Keeps the growth of the session's slots since the begin. */
static void keep_gains(const struct signal_host *host, const struct signal_target *target,
		       const struct queue_counts *before, struct queue_counts *now)
{
	size_t n = 0;

	for (size_t i = 0; i < now->count; i++) {
		struct queue_count gain = now->items[i];

		gain.ns = find_gain(before, &gain);
		if (gain.ns && slot_nest_has(host->pins, gain.slot, target->slot))
			now->items[n++] = gain;
	}
	now->count = n;
}

/* Merges the elements of each cgroup into one, and sorts the most time first. */
static void merge_gains(struct queue_counts *now)
{
	size_t n = 0;

	array_sort(now->items, now->count, sizeof(*now->items), compare_cgroups);
	for (size_t i = 0; i < now->count; i++)
		if (n && now->items[n - 1].cgroup_id == now->items[i].cgroup_id)
			now->items[n - 1].ns += now->items[i].ns;
		else
			now->items[n++] = now->items[i];
	now->count = n;
	array_sort(now->items, n, sizeof(*now->items), compare_gains);
}

/*
 * Whether the cgroup is the session's or below it. For the root, only the processes in the root
 * itself count.
 */
static bool is_own(const struct signal_host *host, const struct signal_target *target, uint64_t id)
{
	struct watch_entry entry;

	return id == target->cgroup_id ||
	       (bpf_map_lookup_elem(host->pins->watches_fd, &id, &entry) == 0 &&
		slot_nest_has(host->pins, entry.slot, target->slot));
}

static int compare_blamed(const void *a, const void *b)
{
	const struct queue_blamed *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return x->row.cgroup_id < y->row.cgroup_id ? -1 : x->row.cgroup_id > y->row.cgroup_id;
}

/* Lists the other cgroups, and requests their paths. 0 or -ENOMEM. */
static int list_blamed(const struct signal_host *host, const struct signal_target *target,
		       const struct queue_counts *now, struct queue_blame *blame)
{
	blame->items = calloc(MAX(now->count, (size_t)1), sizeof(*blame->items));
	if (!blame->items)
		return -ENOMEM;
	for (size_t i = 0; i < now->count; i++) {
		const struct queue_count *gain = &now->items[i];

		if (is_own(host, target, gain->cgroup_id))
			blame->own_ns += gain->ns;
		else
			blame->items[blame->count++] = (struct queue_blamed){
				.row.cgroup_id = gain->cgroup_id,
				.ns = gain->ns,
			};
	}
	neighbour_rows_ask(blame->items, blame->count, sizeof(*blame->items), target->names,
			   host->cgroups);
	return 0;
}

void queue_blame_end(const struct signal_host *host, const struct signal_target *target,
		     const struct queue_counts *before, struct queue_blame *ret_blame)
{
	_cleanup_(queue_blame_forget) struct queue_counts now = {};
	struct queue_blame blame = {};

	if (target->only_tgid)
		blame.reason = one_process;
	else if (read_map(host->pins->signal_fd[PINNED_MAP_queue_neighbours], &now) < 0)
		blame.reason = unreadable;
	if (!blame.reason) {
		keep_gains(host, target, before, &now);
		merge_gains(&now);
		if (list_blamed(host, target, &now, &blame) < 0)
			blame.reason = unreadable;
	}
	*ret_blame = blame;
}

static void add_blamed(void *sum, const void *more)
{
	((struct queue_blamed *)sum)->ns += ((const struct queue_blamed *)more)->ns;
}

void queue_blame_close(const struct signal_host *host, const struct signal_target *target,
		       struct queue_blame *blame)
{
	static const struct neighbour_rows_kind kind = {
		.bytes = sizeof(struct queue_blamed),
		.named = QUEUE_BLAMED,
		.compare = compare_blamed,
		.add = add_blamed,
	};
	_cleanup_(neighbour_rows_source_done) struct neighbour_rows_source source;
	const struct neighbour_names names =
		neighbour_rows_names(&source, target->names, host->cgroups);
	struct queue_blamed rest = {};

	blame->count = neighbour_rows_make(blame->items, blame->count, &kind, &names, &rest);
	blame->rest_ns = rest.ns;
	blame->rest = rest.row.cgroups;
}

void queue_blame_forget(struct queue_counts *counts)
{
	free(TAKE_PTR(counts->items));
	counts->count = 0;
}

void queue_blame_done(struct queue_blame *blame)
{
	for (size_t i = 0; i < blame->count; i++)
		free(blame->items[i].row.path);
	free(TAKE_PTR(blame->items));
	blame->count = 0;
}
