/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/cpu/neighbours.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/cgroup/cgroup_names.h"
#include "consumer/kernel/map_batch.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"
#include "shared/tools/path_text.h"

/*
 * The number of cgroups, those with the most time, that are looked up by a process in them: two
 * system calls each. The other cgroups are found if their paths are already known.
 */
#define FOUND_BY_PROCESS CGROUP_NAMES_MAX

_Static_assert(NEIGHBOUR_LEVELS == CGROUP_NAMES_LEVELS, "what the kernel side notes is kept");

static const char unreadable[] = "the kernel's counts of CPU time by cgroup cannot be read";

/* All elements of the map. */
struct reading {
	uint64_t *ids;		  /* owned */
	struct neighbour *values; /* owned */
	uint32_t count;
};

static void reading_done(struct reading *r)
{
	free(r->ids);
	free(r->values);
}

static int read_map(int fd, struct reading *ret_reading)
{
	static const struct map_sizes sizes = { sizeof(uint64_t), sizeof(struct neighbour),
						NEIGHBOURS_MAX };

	return map_batch_read(fd, &sizes, &ret_reading->ids, &ret_reading->values,
			      &ret_reading->count);
}

/* Whether the map could be emptied: if so, everything read from it later is newer. */
static bool empty_map(int fd, const struct reading *r)
{
	uint32_t count = r->count;

	return !count || bpf_map_delete_batch(fd, r->ids, &count, NULL) == 0;
}

static int compare_ids(const void *a, const void *b)
{
	const struct neighbour_before *x = a, *y = b;

	return x->cgroup_id < y->cgroup_id ? -1 : x->cgroup_id > y->cgroup_id;
}

static int keep_counts(const struct reading *r, struct neighbour_counts *c)
{
	c->items = calloc(r->count, sizeof(*c->items));
	if (!c->items)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->count; i++)
		c->items[i] = (struct neighbour_before){ r->ids[i], r->values[i].cpu_ns };
	c->count = r->count;
	qsort(c->items, c->count, sizeof(*c->items), compare_ids);
	return 0;
}

static int note_counts(const struct pinned_maps *pins, struct neighbour_counts *c)
{
	_cleanup_(reading_done) struct reading reading = {};
	int r = read_map(pins->neighbours_fd, &reading);

	if (r == 0)
		r = neighbour_cpus_read(pins->neighbour_cpus_fd, pins->abi.cpus_possible,
					&c->by_cpu);
	if (r == 0)
		r = pinned_maps_totals(pins, &c->totals);
	if (r < 0 || !reading.count)
		return r;
	if (!pins->control->sessions && empty_map(pins->neighbours_fd, &reading) &&
	    neighbour_cpus_empty(pins->neighbour_cpus_fd, &c->by_cpu)) {
		neighbour_cpus_done(&c->by_cpu);
		return 0;
	}
	return keep_counts(&reading, c);
}

static void add_sessions(const struct pinned_maps *pins, int number)
{
	struct control *c = pins->control;

	__atomic_store_n(&c->sessions, c->sessions + (uint32_t)number, __ATOMIC_SEQ_CST);
}

void neighbours_begin(const struct pinned_maps *pins, struct neighbour_counts *ret_counts)
{
	struct neighbour_counts counts = {};

	if (note_counts(pins, &counts) < 0)
		counts.reason = unreadable;
	add_sessions(pins, 1);
	*ret_counts = counts;
}

/* Returns the growth since the begin; an element that is not that old begins at 0. */
static uint64_t find_gain(const struct neighbour_counts *c, uint64_t id, uint64_t now_ns)
{
	const struct neighbour_before key = { .cgroup_id = id };
	const struct neighbour_before *found =
		array_find(&key, c->items, c->count, sizeof(key), compare_ids);

	return found && found->cpu_ns <= now_ns ? now_ns - found->cpu_ns : now_ns;
}

static int compare_times(const void *a, const void *b)
{
	const struct neighbour_time *x = a, *y = b;

	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns < y->cpu_ns ? 1 : -1;
	return x->row.cgroup_id < y->row.cgroup_id ? -1 : x->row.cgroup_id > y->row.cgroup_id;
}

static struct neighbour_time take_time(uint64_t id, uint64_t cpu_ns, const struct neighbour *now)
{
	struct neighbour_time t = {
		.row.cgroup_id = id,
		.cpu_ns = cpu_ns,
		.slot = now->slot,
		.now = now,
	};

	memcpy(t.name, now->name, sizeof(t.name) - 1);
	/* The threads with this name had at least `votes` ticks (bpf/cpu/neighbours.h). */
	if (now->votes >= now->ticks - now->votes)
		memcpy(t.comm, now->comm, sizeof(t.comm) - 1);
	return t;
}

/* Lists the cgroups that used CPU time since the session began. 0 or -ENOMEM. */
static int list_times(const struct reading *r, const struct neighbour_counts *c,
		      struct neighbours *n)
{
	n->items = calloc(MAX(r->count, 1u), sizeof(*n->items));
	if (!n->items)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->count; i++) {
		uint64_t cpu_ns = find_gain(c, r->ids[i], r->values[i].cpu_ns);

		if (cpu_ns)
			n->items[n->count++] = take_time(r->ids[i], cpu_ns, &r->values[i]);
	}
	array_sort(n->items, n->count, sizeof(*n->items), compare_times);
	return 0;
}

/*
 * Requests the paths; for a cgroup that may be gone, the levels above it. The first
 * FOUND_BY_PROCESS cgroups are looked up by a process in them, the others are found if their paths
 * are known.
 */
static void ask_paths(struct neighbours *n, struct cgroups *cgroups,
		      const struct neighbours_target *of)
{
	for (size_t i = 0; i < n->count; i++) {
		struct neighbour_time *t = &n->items[i];
		const struct neighbour *now = TAKE_PTR(t->now);
		uint32_t pid_hint = i < FOUND_BY_PROCESS ? now->tgid : 0;

		if (t->row.cgroup_id != of->cgroup_id &&
		    !cgroup_names_ask(of->names, cgroups, t->row.cgroup_id, pid_hint))
			cgroup_names_note_above(of->names, cgroups, t->row.cgroup_id,
						(const void *)now->above);
	}
}

/* Adds the times by CPU of a cgroup that belongs to the session. */
static void add_own(const struct neighbour_cpus *by_cpu, uint64_t id, uint64_t *own_ns)
{
	const uint64_t *ns = neighbour_cpus_find(by_cpu, id);

	for (uint32_t cpu = 0; ns && cpu < by_cpu->cpus; cpu++)
		own_ns[cpu] += ns[cpu];
}

/*
 * Returns the cgroup's time on the CPUs that the session's cgroup ran on; on all CPUs if it did not
 * run.
 */
static uint64_t sum_beside(const struct neighbours *n, uint64_t id, const uint64_t *own_ns)
{
	const uint64_t *ns = neighbour_cpus_find(&n->by_cpu, id);
	uint64_t sum = 0;

	for (uint32_t cpu = 0; ns && cpu < n->by_cpu.cpus; cpu++)
		sum += !n->own_cpus || own_ns[cpu] ? ns[cpu] : 0;
	return sum;
}

/* Reads the times by CPU since the session began. 0 or -errno. */
static int read_cpus(const struct pinned_maps *pins, const struct neighbour_counts *c,
		     struct neighbours *n)
{
	int r = neighbour_cpus_read(pins->neighbour_cpus_fd, pins->abi.cpus_possible, &n->by_cpu);

	if (r == 0)
		neighbour_cpus_subtract(&n->by_cpu, &c->by_cpu);
	return r;
}

static int find_neighbours(const struct pinned_maps *pins, struct cgroups *cgroups,
			   const struct neighbours_target *of, const struct neighbour_counts *c,
			   struct neighbours *n)
{
	_cleanup_(reading_done) struct reading reading = {};
	struct totals totals;
	int r = pinned_maps_totals(pins, &totals);

	if (r == 0)
		r = read_map(pins->neighbours_fd, &reading);
	if (r == 0)
		r = list_times(&reading, c, n);
	if (r < 0)
		return r;
	ask_paths(n, cgroups, of);
	n->idle_ns = totals.idle_ns - c->totals.idle_ns;
	n->unlisted_ns = totals.neighbours_full_ns - c->totals.neighbours_full_ns;
	n->short_ns = totals.neighbours_short_ns - c->totals.neighbours_short_ns;
	n->hidden_ns = totals.neighbours_hidden_ns - c->totals.neighbours_hidden_ns;
	return read_cpus(pins, c, n);
}

void neighbours_end(const struct pinned_maps *pins, struct cgroups *cgroups,
		    const struct neighbours_target *of, struct neighbour_counts *counts,
		    struct neighbours *ret_found)
{
	struct neighbours found = {};

	add_sessions(pins, -1);
	if (!counts->reason && find_neighbours(pins, cgroups, of, counts, &found) < 0)
		counts->reason = unreadable;
	*ret_found = found;
}

/*
 * Whether the cgroup is the session's or below it. If neither its path nor a path between the two
 * is known, the slot of its watch decides. For the root, only the processes in the root itself
 * count.
 */
static bool is_own(struct cgroups *cgroups, const struct neighbours_target *of,
		   const struct neighbour_time *t)
{
	const char *path;

	if (t->row.cgroup_id == of->cgroup_id)
		return true;
	if (!strcmp(of->cgroup, "/"))
		return false;
	path = cgroup_names_near(of->names, cgroups, t->row.cgroup_id);
	if (path && path_text_is_within(path, of->cgroup))
		return true;
	path = cgroup_names_ask(of->names, cgroups, t->row.cgroup_id, 0);
	return !path && t->slot == of->slot;
}

/* Removes the session's own cgroups from the list, and adds their times by CPU to own_ns. */
static void take_own(struct neighbours *n, struct cgroups *cgroups,
		     const struct neighbours_target *of, uint64_t *own_ns)
{
	size_t others = 0;

	for (size_t i = 0; i < n->count; i++) {
		const struct neighbour_time *t = &n->items[i];

		if (is_own(cgroups, of, t)) {
			n->own_ns += t->cpu_ns;
			add_own(&n->by_cpu, t->row.cgroup_id, own_ns);
			continue;
		}
		n->others_ns += t->cpu_ns;
		n->items[others++] = *t;
	}
	n->count = others;
}

static void add_time(void *sum, const void *more)
{
	struct neighbour_time *to = sum;
	const struct neighbour_time *t = more;

	to->cpu_ns += t->cpu_ns;
	to->beside_ns += t->beside_ns;
	to->comm[0] = '\0';
}

static void make_rows(struct neighbours *n, struct cgroups *cgroups,
		      const struct neighbours_target *of)
{
	static const struct neighbour_rows_kind kind = {
		.bytes = sizeof(struct neighbour_time),
		.named = NEIGHBOURS_NAMED,
		.compare = compare_times,
		.add = add_time,
	};
	_cleanup_(neighbour_rows_source_done) struct neighbour_rows_source source;
	const struct neighbour_names names = neighbour_rows_names(&source, of->names, cgroups);
	struct neighbour_time rest = {};

	n->count = neighbour_rows_make(n->items, n->count, &kind, &names, &rest);
	n->rest_ns = rest.cpu_ns;
	n->rest = rest.row.cgroups;
	/*
	 * Only the root has no name. A consumer in a cgroup namespace of its own cannot find the
	 * root.
	 */
	for (size_t i = 0; i < n->count; i++)
		if (!n->items[i].row.path && !n->items[i].name[0])
			n->items[i].row.path = strdup("/");
}

int neighbours_close(struct cgroups *cgroups, const struct neighbours_target *of,
		     struct neighbours *n)
{
	_cleanup_free_ uint64_t *own_ns = calloc(MAX(n->by_cpu.cpus, 1u), sizeof(*own_ns));

	if (!own_ns)
		return -ENOMEM;
	take_own(n, cgroups, of, own_ns);
	n->others_ns += n->unlisted_ns + n->hidden_ns;
	/* Splits the time of other cgroups into the time on the session's own CPUs and the rest. */
	n->own_cpus = neighbour_cpus_keep(own_ns, n->by_cpu.cpus);
	for (size_t i = 0; i < n->count; i++) {
		struct neighbour_time *t = &n->items[i];

		t->beside_ns = sum_beside(n, t->row.cgroup_id, own_ns);
		n->beside_ns += t->beside_ns;
	}
	make_rows(n, cgroups, of);
	neighbour_cpus_done(&n->by_cpu);
	n->by_cpu = (struct neighbour_cpus){};
	return 0;
}

void neighbour_counts_done(struct neighbour_counts *counts)
{
	free(TAKE_PTR(counts->items));
	neighbour_cpus_done(&counts->by_cpu);
}

void neighbours_done(struct neighbours *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->items[i].row.path);
	free(TAKE_PTR(n->items));
	n->count = 0;
	neighbour_cpus_done(&n->by_cpu);
	n->by_cpu = (struct neighbour_cpus){};
}
