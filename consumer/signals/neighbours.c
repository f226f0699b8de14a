/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/neighbours.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/cgroup/cgroup_names.h"
#include "consumer/cgroup/delegated.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/*
 * The number of cgroups, those with the most time, that are looked for by a process in them: two
 * system calls each. The others are found where their paths are known already.
 */
#define FOUND_BY_PROCESS CGROUP_NAMES_MAX

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

/* Reads the whole map in one call: it holds no more than there is room for. 0 or -errno. */
static int read_map(int fd, struct reading *ret_reading)
{
	_cleanup_free_ uint64_t *ids = calloc(NEIGHBOURS_MAX, sizeof(*ids));
	_cleanup_free_ struct neighbour *values = calloc(NEIGHBOURS_MAX, sizeof(*values));
	uint32_t count = NEIGHBOURS_MAX, next;

	if (!ids || !values)
		return -ENOMEM;
	if (bpf_map_lookup_batch(fd, NULL, &next, ids, values, &count, NULL) < 0 &&
	    errno != ENOENT) /* the end of the map */
		return -errno;
	*ret_reading = (struct reading){ TAKE_PTR(ids), TAKE_PTR(values), count };
	return 0;
}

/* Whether the map could be emptied: then all that it will have is of after this. */
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
		counts.why = unreadable;
	add_sessions(pins, 1);
	*ret_counts = counts;
}

/* Returns how much more than at the begin; an element that is not as old begins at 0. */
static uint64_t find_gain(const struct neighbour_counts *c, uint64_t id, uint64_t now_ns)
{
	const struct neighbour_before key = { .cgroup_id = id }, *found = NULL;

	if (c->count)
		found = bsearch(&key, c->items, c->count, sizeof(key), compare_ids);
	return found && found->cpu_ns <= now_ns ? now_ns - found->cpu_ns : now_ns;
}

static bool is_below(const char *path, const char *above)
{
	size_t bytes = strlen(above);

	return !strncmp(path, above, bytes) && (!path[bytes] || path[bytes] == '/');
}

/*
 * Whether the cgroup is the session's or below it; `path` is NULL when it is not known. The watch
 * of a cgroup that is gone tells. Of the root only the processes in it are meant.
 */
static bool is_own(const struct neighbours_of *of, uint64_t id, const struct neighbour *n,
		   const char *path)
{
	if (id == of->cgroup_id)
		return true;
	if (!strcmp(of->cgroup, "/"))
		return false;
	return path ? is_below(path, of->cgroup) : n->slot == of->slot;
}

/* An element with the time that it has had since the session began. */
struct gain {
	uint64_t cpu_ns, id;
	const struct neighbour *now;
	size_t group; /* number of its user's directory plus 1; 0: none */
	size_t item;  /* number of the element of neighbours.items plus 1; 0: none */
	bool own;     /* the session's cgroup, or one below it */
};

static int compare_gains(const void *a, const void *b)
{
	const struct gain *x = a, *y = b;

	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns < y->cpu_ns ? 1 : -1;
	return x->id < y->id ? -1 : 1;
}

static struct gain *list_gains(const struct reading *r, const struct neighbour_counts *c,
			       size_t *ret_count)
{
	struct gain *gains = calloc(MAX(r->count, 1u), sizeof(*gains));
	size_t count = 0;

	for (uint32_t i = 0; gains && i < r->count; i++) {
		uint64_t cpu_ns = find_gain(c, r->ids[i], r->values[i].cpu_ns);

		if (cpu_ns)
			gains[count++] = (struct gain){ cpu_ns, r->ids[i], &r->values[i] };
	}
	if (count)
		qsort(gains, count, sizeof(*gains), compare_gains);
	*ret_count = count;
	return gains;
}

/* A row of the list, while it is made: one cgroup, or all of a user's directory. */
struct row {
	uint64_t cpu_ns;
	struct gain *first; /* that with the most time */
	size_t group, cgroups;
};

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns < y->cpu_ns ? 1 : -1;
	return x->first->id < y->first->id ? -1 : 1;
}

/*
 * Finds whose a gain is. The first are looked for by a process in them; the others are found where
 * their paths are known.
 */
static void find_place(struct gain *g, bool by_process, struct cgroups *cgroups,
		       const struct neighbours_of *of, struct delegated_list *delegated)
{
	uint32_t pid_hint = by_process ? g->now->tgid : 0;
	const char *path = NULL;

	if (g->id != of->cgroup_id)
		path = cgroup_names_ask(of->names, cgroups, g->id, pid_hint);
	g->own = is_own(of, g->id, g->now, path);
	if (!g->own && path)
		g->group = delegated_find(delegated, cgroups, path);
}

/* Makes a row of each directory of a user and of each other cgroup; sorted. NULL without memory. */
static struct row *make_rows(struct gain *gains, size_t count, size_t *ret_rows)
{
	struct row *rows = calloc(MAX(count, (size_t)1), sizeof(*rows));
	size_t of_group[DELEGATED_MAX + 1] = { 0 }, n = 0; /* number of its row plus 1 */

	for (size_t i = 0; rows && i < count; i++) {
		size_t group = gains[i].group, at = group ? of_group[group] : 0;

		if (gains[i].own)
			continue;
		if (!at) {
			rows[n] = (struct row){ .first = &gains[i], .group = group };
			of_group[group] = at = ++n;
		}
		rows[at - 1].cpu_ns += gains[i].cpu_ns;
		rows[at - 1].cgroups++;
	}
	if (n)
		qsort(rows, n, sizeof(*rows), compare_rows);
	*ret_rows = n;
	return rows;
}

static void name_row(struct neighbours *n, const struct row *row, struct cgroups *cgroups,
		     struct cgroup_names *names, const struct delegated_list *delegated)
{
	const struct delegated *of = row->group ? &delegated->items[row->group - 1] : NULL;
	struct neighbour_time *t = &n->items[n->count++];
	bool is_directory = of && row->cgroups > 1;
	const struct gain *g = row->first;
	const char *path = is_directory ? of->path : cgroup_names_ask(names, cgroups, g->id, 0);

	/* Only the root has no name. In a cgroup namespace of its own the consumer cannot find it.
	 */
	if (!path && !g->now->name[0])
		path = "/";
	t->cgroup_id = is_directory ? of->id : g->id;
	t->cpu_ns = row->cpu_ns;
	t->cgroups = row->cgroups;
	t->uid = of ? of->uid : 0;
	t->path = path ? strdup(path) : NULL;
	memcpy(t->name, g->now->name, sizeof(t->name) - 1);
	/* The threads with this name had at least `votes` ticks (bpf/neighbours.h). */
	if (row->cgroups == 1 && g->now->votes >= g->now->ticks - g->now->votes)
		memcpy(t->comm, g->now->comm, sizeof(t->comm) - 1);
}

/* Notes which of the gains are in the last item. */
static void mark_gains(struct gain *gains, size_t count, const struct row *row, size_t item)
{
	row->first->item = item;
	for (size_t i = 0; row->group && i < count; i++)
		if (gains[i].group == row->group)
			gains[i].item = item;
}

/* Puts the gains into own, into the list while it has room, or into the rest. 0 or -ENOMEM. */
static int add_gains(struct neighbours *n, struct gain *gains, size_t count,
		     struct cgroups *cgroups, const struct neighbours_of *of)
{
	_cleanup_(delegated_done) struct delegated_list delegated = {};
	_cleanup_free_ struct row *rows = NULL;
	size_t n_rows;

	for (size_t i = 0; i < count; i++) {
		find_place(&gains[i], i < FOUND_BY_PROCESS, cgroups, of, &delegated);
		*(gains[i].own ? &n->own_ns : &n->others_ns) += gains[i].cpu_ns;
	}
	rows = make_rows(gains, count, &n_rows);
	for (size_t i = 0; rows && i < n_rows; i++) {
		if (n->count < NEIGHBOURS_NAMED) {
			name_row(n, &rows[i], cgroups, of->names, &delegated);
			mark_gains(gains, count, &rows[i], n->count);
			continue;
		}
		n->rest_ns += rows[i].cpu_ns;
		n->rest += rows[i].cgroups;
	}
	return rows ? 0 : -ENOMEM;
}

/* Adds the times by CPU of one that is the session's own. */
static void add_own(const struct neighbour_cpus *by_cpu, uint64_t id, uint64_t *own_ns)
{
	const uint64_t *ns = neighbour_cpus_find(by_cpu, id);

	for (uint32_t cpu = 0; ns && cpu < by_cpu->cpus; cpu++)
		own_ns[cpu] += ns[cpu];
}

/* Returns the time of one on the CPUs that the session's cgroup ran on; on all, if it did not. */
static uint64_t sum_beside(const struct neighbours *n, const struct neighbour_cpus *by_cpu,
			   uint64_t id, const uint64_t *own_ns)
{
	const uint64_t *ns = neighbour_cpus_find(by_cpu, id);
	uint64_t sum = 0;

	for (uint32_t cpu = 0; ns && cpu < by_cpu->cpus; cpu++)
		sum += !n->own_cpus || own_ns[cpu] ? ns[cpu] : 0;
	return sum;
}

/* Tells the own cgroup's time from that of others beside it, CPU by CPU. */
static void find_beside(struct neighbours *n, const struct neighbour_cpus *by_cpu,
			const struct gain *gains, size_t count, uint64_t *own_ns)
{
	for (size_t i = 0; i < count; i++)
		if (gains[i].own)
			add_own(by_cpu, gains[i].id, own_ns);
	n->own_cpus = neighbour_cpus_keep(own_ns, by_cpu->cpus);
	for (size_t i = 0; i < count; i++)
		if (!gains[i].own)
			n->beside_ns += sum_beside(n, by_cpu, gains[i].id, own_ns);
	for (size_t i = 0; i < count; i++)
		if (gains[i].item)
			n->items[gains[i].item - 1].beside_ns +=
				sum_beside(n, by_cpu, gains[i].id, own_ns);
}

/* Reads the times by CPU since the session began. 0 or -errno. */
static int read_beside(const struct pinned_maps *pins, const struct neighbour_counts *c,
		       const struct gain *gains, size_t count, struct neighbours *n)
{
	_cleanup_(neighbour_cpus_done) struct neighbour_cpus by_cpu = {};
	_cleanup_free_ uint64_t *own_ns = calloc(pins->abi.cpus_possible, sizeof(*own_ns));
	int r = own_ns ? neighbour_cpus_read(pins->neighbour_cpus_fd, pins->abi.cpus_possible,
					     &by_cpu)
		       : -ENOMEM;

	if (r < 0)
		return r;
	neighbour_cpus_subtract(&by_cpu, &c->by_cpu);
	find_beside(n, &by_cpu, gains, count, own_ns);
	return 0;
}

static int find_neighbours(const struct pinned_maps *pins, struct cgroups *cgroups,
			   const struct neighbours_of *of, const struct neighbour_counts *c,
			   struct neighbours *n)
{
	_cleanup_(reading_done) struct reading reading = {};
	_cleanup_free_ struct gain *gains = NULL;
	struct totals totals;
	size_t count;
	int r = pinned_maps_totals(pins, &totals);

	if (r == 0)
		r = read_map(pins->neighbours_fd, &reading);
	if (r < 0)
		return r;
	gains = list_gains(&reading, c, &count);
	if (!gains)
		return -ENOMEM;
	r = add_gains(n, gains, count, cgroups, of);
	if (r == 0)
		r = read_beside(pins, c, gains, count, n);
	if (r < 0)
		return r;
	n->idle_ns = totals.idle_ns - c->totals.idle_ns;
	n->unlisted_ns = totals.neighbours_full_ns - c->totals.neighbours_full_ns;
	n->short_ns = totals.neighbours_short_ns - c->totals.neighbours_short_ns;
	n->hidden_ns = totals.neighbours_hidden_ns - c->totals.neighbours_hidden_ns;
	n->others_ns += n->unlisted_ns + n->hidden_ns;
	return 0;
}

void neighbours_end(const struct pinned_maps *pins, struct cgroups *cgroups,
		    const struct neighbours_of *of, struct neighbour_counts *counts,
		    struct neighbours *ret_found)
{
	struct neighbours found = {};

	add_sessions(pins, -1);
	if (!counts->why && find_neighbours(pins, cgroups, of, counts, &found) < 0)
		counts->why = unreadable;
	*ret_found = found;
}

void neighbours_close(struct cgroup_names *names, struct cgroups *cgroups, struct neighbours *n)
{
	for (size_t i = 0; i < n->count; i++)
		delegated_name(names, cgroups, n->items[i].cgroup_id, &n->items[i].path,
			       &n->items[i].unnamed, &n->items[i].uid);
}

void neighbour_counts_done(struct neighbour_counts *counts)
{
	free(TAKE_PTR(counts->items));
	neighbour_cpus_done(&counts->by_cpu);
}

void neighbours_done(struct neighbours *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->items[i].path);
}
