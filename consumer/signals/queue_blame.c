/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/queue_blame.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/cgroup/cgroup_names.h"
#include "consumer/cgroup/delegated.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/kernel/table_share.h"
#include "consumer/signals/slot_nest.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static const char unreadable[] = "the kernel's counts of who had the CPUs cannot be read";
static const char one_process[] =
	"the kernel side counts it by cgroup, and the session is of one process";

static int compare_counts(const void *a, const void *b)
{
	const struct queue_count *x = a, *y = b;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->cgroup_id < y->cgroup_id ? -1 : x->cgroup_id > y->cgroup_id;
}

/* Reads the map in one call: it holds no more than there is room for. 0 or -errno. */
static int read_map(int fd, struct queue_counts *ret_counts)
{
	_cleanup_free_ struct queue_neighbour *keys = calloc(QUEUE_NEIGHBOURS_MAX, sizeof(*keys));
	_cleanup_free_ uint64_t *ns = calloc(QUEUE_NEIGHBOURS_MAX, sizeof(*ns));
	uint32_t count = QUEUE_NEIGHBOURS_MAX, next;
	struct queue_counts counts = {};

	if (!keys || !ns)
		return -ENOMEM;
	if (bpf_map_lookup_batch(fd, NULL, &next, keys, ns, &count, NULL) < 0 &&
	    errno != ENOENT) /* the end of the map */
		return -errno;
	counts.items = calloc(MAX(count, 1u), sizeof(*counts.items));
	if (!counts.items)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		counts.items[i] = (struct queue_count){ keys[i].cgroup_id, ns[i], keys[i].slot };
	counts.count = count;
	if (count)
		qsort(counts.items, count, sizeof(*counts.items), compare_counts);
	*ret_counts = counts;
	return 0;
}

/* Removes what the reading has. 0 or -errno. */
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

/* Returns how much more than at the begin. */
static uint64_t find_gain(const struct queue_counts *before, const struct queue_count *now)
{
	const struct queue_count *found = NULL;

	if (before->count)
		found = bsearch(now, before->items, before->count, sizeof(*now), compare_counts);
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

/* Keeps what the slots of the session have had since the begin. */
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

/* Makes one element of each cgroup, the most time first. */
static void merge_gains(struct queue_counts *now)
{
	size_t n = 0;

	if (!now->count)
		return;
	qsort(now->items, now->count, sizeof(*now->items), compare_cgroups);
	for (size_t i = 0; i < now->count; i++)
		if (n && now->items[n - 1].cgroup_id == now->items[i].cgroup_id)
			now->items[n - 1].ns += now->items[i].ns;
		else
			now->items[n++] = now->items[i];
	now->count = n;
	qsort(now->items, n, sizeof(*now->items), compare_gains);
}

/* Whether the cgroup is the session's or below it; of the root only the processes in it are. */
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
	return x->cgroup_id < y->cgroup_id ? -1 : x->cgroup_id > y->cgroup_id;
}

/* Returns a copy of the path of an element; NULL: it is not known. */
static char *copy_path(const struct signal_host *host, const struct signal_target *target,
		       const struct queue_blamed *one, const struct delegated *of)
{
	const char *path = of && one->cgroups > 1 ? of->path
						  : cgroup_names_ask(target->names, host->cgroups,
								     one->cgroup_id, 0);

	return path ? strdup(path) : NULL;
}

/* An element of the list while it is made. */
struct blamed_group {
	struct queue_blamed one;
	size_t group; /* number of its user's directory plus 1; 0: none */
};

/*
 * Adds up the gains of each directory of a user, and sorts. `list` has room for all. Returns how
 * many there are.
 */
static size_t add_gains(const struct signal_host *host, const struct signal_target *target,
			const struct queue_counts *now, struct delegated_list *delegated,
			struct blamed_group *list, uint64_t *own_ns)
{
	size_t of_group[DELEGATED_MAX + 1] = { 0 }, n = 0; /* number of its element plus 1 */

	for (size_t i = 0; i < now->count; i++) {
		const struct queue_count *gain = &now->items[i];
		const char *path;
		size_t group, at;

		if (is_own(host, target, gain->cgroup_id)) {
			*own_ns += gain->ns;
			continue;
		}
		path = cgroup_names_ask(target->names, host->cgroups, gain->cgroup_id, 0);
		group = path ? delegated_find(delegated, host->cgroups, path) : 0;
		at = group ? of_group[group] : 0;
		if (!at) {
			list[n] = (struct blamed_group){ .one.cgroup_id = gain->cgroup_id,
							 .group = group };
			of_group[group] = at = ++n;
		}
		list[at - 1].one.ns += gain->ns;
		list[at - 1].one.cgroups++;
	}
	if (n)
		qsort(list, n, sizeof(*list), compare_blamed);
	return n;
}

/* Keeps the first, and the sum of the rest. */
static int sum_owners(const struct signal_host *host, const struct signal_target *target,
		      const struct queue_counts *now, struct queue_blame *blame)
{
	_cleanup_free_ struct blamed_group *list =
		calloc(MAX(now->count, (size_t)1), sizeof(*list));
	_cleanup_(delegated_done) struct delegated_list delegated = {};
	size_t n = list ? add_gains(host, target, now, &delegated, list, &blame->own_ns) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct delegated *of =
			list[i].group ? &delegated.items[list[i].group - 1] : NULL;
		struct queue_blamed *one = &blame->items[blame->count];

		if (blame->count == QUEUE_BLAMED) {
			blame->rest_ns += list[i].one.ns;
			blame->rest += list[i].one.cgroups;
			continue;
		}
		*one = list[i].one;
		one->uid = of ? of->uid : 0;
		one->path = copy_path(host, target, one, of);
		if (of && one->cgroups > 1)
			one->cgroup_id = of->id;
		blame->count++;
	}
	return list ? 0 : -ENOMEM;
}

void queue_blame_end(const struct signal_host *host, const struct signal_target *target,
		     const struct queue_counts *before, struct queue_blame *ret_blame)
{
	_cleanup_(queue_blame_forget) struct queue_counts now = {};
	struct queue_blame blame = {};

	if (target->only_tgid)
		blame.why = one_process;
	else if (read_map(host->pins->signal_fd[PINNED_MAP_queue_neighbours], &now) < 0)
		blame.why = unreadable;
	if (!blame.why) {
		keep_gains(host, target, before, &now);
		merge_gains(&now);
		if (sum_owners(host, target, &now, &blame) < 0)
			blame.why = unreadable;
	}
	*ret_blame = blame;
}

void queue_blame_close(const struct signal_host *host, const struct signal_target *target,
		       struct queue_blame *blame)
{
	for (size_t i = 0; i < blame->count; i++)
		delegated_name(target->names, host->cgroups, blame->items[i].cgroup_id,
			       &blame->items[i].path, &blame->items[i].unnamed,
			       &blame->items[i].uid);
}

void queue_blame_forget(struct queue_counts *counts)
{
	free(TAKE_PTR(counts->items));
	counts->count = 0;
}

void queue_blame_done(struct queue_blame *blame)
{
	for (size_t i = 0; i < blame->count; i++)
		free(TAKE_PTR(blame->items[i].path));
	blame->count = 0;
}
