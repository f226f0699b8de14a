/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/neighbour_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/cgroup/cgroup_names.h"
#include "consumer/cgroup/cgroups.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static struct neighbour_row *row_at(void *items, size_t i, const struct neighbour_rows_kind *kind)
{
	return (struct neighbour_row *)(void *)((char *)items + i * kind->bytes);
}

/* Returns 0 for elements of one row. */
static int compare_rows(const void *a, const void *b, const struct neighbour_rows_kind *kind)
{
	const struct neighbour_row *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return kind->compare_kind ? kind->compare_kind(a, b) : 0;
}

/* Sorts the largest element of a row first. */
static int compare_within(const void *a, const void *b, void *context)
{
	const struct neighbour_rows_kind *kind = context;
	int order = compare_rows(a, b, kind);

	return order ? order : kind->compare(a, b);
}

/* Merges all elements of each row into one. Returns the number of rows. */
static size_t add_up(void *items, size_t count, const struct neighbour_rows_kind *kind)
{
	size_t n = 0;

	qsort_r(items, count, kind->bytes, compare_within, (void *)kind);
	for (size_t i = 0; i < count; i++) {
		struct neighbour_row *row = row_at(items, i, kind);
		struct neighbour_row *last = n ? row_at(items, n - 1, kind) : NULL;

		if (last && row->group && !compare_rows(last, row, kind)) {
			last->cgroups++;
			kind->add(last, row);
			continue;
		}
		if (n != i)
			memcpy(row_at(items, n, kind), row, kind->bytes);
		n++;
	}
	return n;
}

/* Undoes the groups of elements from `from` on that have too few members. */
static void leave_few(void *items, size_t from, size_t count,
		      const struct neighbour_rows_kind *kind)
{
	size_t members[DELEGATED_MAX + NEIGHBOUR_PARENTS + 1] = { 0 };

	for (size_t i = from; i < count; i++)
		members[MIN(row_at(items, i, kind)->group, ARRAY_SIZE(members) - 1)]++;
	for (size_t i = from; i < count; i++) {
		struct neighbour_row *row = row_at(items, i, kind);

		if (row->group > DELEGATED_MAX && members[row->group] < NEIGHBOUR_SIBLINGS)
			row->group = 0;
	}
}

/* Adds up small cgroups of one directory. Returns the number of elements. */
static size_t add_up_siblings(void *items, size_t count, const struct neighbour_rows_kind *kind,
			      const struct neighbour_names *names)
{
	size_t from = kind->named / 2;

	if (count <= kind->named || !names->parent)
		return count;
	for (size_t i = from; i < count; i++) {
		struct neighbour_row *row = row_at(items, i, kind);

		if (!row->group)
			row->group = names->parent(names->context, row->cgroup_id);
	}
	leave_few(items, from, count, kind);
	count = from + add_up(row_at(items, from, kind), count - from, kind);
	qsort(items, count, kind->bytes, kind->compare);
	return count;
}

size_t neighbour_rows_make(void *items, size_t count, const struct neighbour_rows_kind *kind,
			   const struct neighbour_names *names, void *rest)
{
	size_t named;

	if (!count)
		return 0;
	for (size_t i = 0; i < count; i++) {
		struct neighbour_row *row = row_at(items, i, kind);

		row->group = names->group(names->context, row->cgroup_id);
		row->cgroups = 1;
	}
	count = add_up(items, count, kind);
	qsort(items, count, kind->bytes, kind->compare);
	count = add_up_siblings(items, count, kind, names);
	named = MIN(count, kind->named);
	for (size_t i = 0; i < named; i++)
		names->name(names->context, row_at(items, i, kind));
	for (size_t i = named; i < count; i++) {
		kind->add(rest, row_at(items, i, kind));
		((struct neighbour_row *)rest)->cgroups += row_at(items, i, kind)->cgroups;
	}
	return named;
}

const char *neighbour_rows_name(const char *path)
{
	return strcmp(path, "/") != 0 ? path
				      : "kernel threads and processes outside of any service";
}

void neighbour_rows_say(const struct neighbour_row *row, char text[NEIGHBOUR_SAYS_BYTES])
{
	if (row->cgroups > 1)
		snprintf(text, NEIGHBOUR_SAYS_BYTES, "%zu cgroups in %.250s", row->cgroups,
			 row->path);
	else
		snprintf(text, NEIGHBOUR_SAYS_BYTES, "%.250s", neighbour_rows_name(row->path));
}

void neighbour_rows_ask(const void *items, size_t count, size_t bytes, struct cgroup_names *names,
			struct cgroups *cgroups)
{
	for (size_t i = 0; i < count; i++) {
		const struct neighbour_row *row = (const void *)((const char *)items + i * bytes);

		(void)cgroup_names_ask(names, cgroups, row->cgroup_id, 0);
	}
}

static size_t find_group(void *context, uint64_t cgroup_id)
{
	struct neighbour_rows_source *p = context;
	const char *path = cgroup_names_near(p->names, p->cgroups, cgroup_id);

	return path ? delegated_find(&p->delegated, p->cgroups, path) : 0;
}

/* Returns the number of the directory in the list plus 1, or 0. */
static size_t add_parent(struct neighbour_rows_source *p, const char *path, size_t bytes)
{
	_cleanup_free_ char *own = strndup(path, bytes);
	uint64_t key = own ? idmap_text_key(own) : 0;
	struct neighbour_parent *known = key ? idmap_get(&p->by_path, key) : NULL;
	uint64_t id;

	if (known) /* an owner can make paths with one key */
		return !strcmp(known->path, own) ? (size_t)(known - p->parents) + 1 : 0;
	if (!p->parents)
		p->parents = calloc(NEIGHBOUR_PARENTS, sizeof(*p->parents));
	if (!p->parents || !key || p->n_parents == NEIGHBOUR_PARENTS ||
	    cgroups_id(p->cgroups, own, &id) < 0 ||
	    idmap_put(&p->by_path, key, &p->parents[p->n_parents]) < 0)
		return 0;
	p->parents[p->n_parents] = (struct neighbour_parent){ TAKE_PTR(own), id };
	return ++p->n_parents;
}

/* The directory above the cgroup; for one that is gone, the next one above that is known. */
static size_t find_parent(void *context, uint64_t cgroup_id)
{
	struct neighbour_rows_source *p = context;
	const char *own = cgroup_names_ask(p->names, p->cgroups, cgroup_id, 0);
	const char *path = own ? own : cgroup_names_near(p->names, p->cgroups, cgroup_id);
	const char *end = own ? strrchr(own, '/') : NULL;
	size_t bytes = end ? (size_t)(end - own) : path ? strlen(path) : 0;
	size_t number = bytes > 1 ? add_parent(p, path, bytes) : 0;

	return number ? DELEGATED_MAX + number : 0;
}

static void name_row(void *context, struct neighbour_row *row)
{
	struct neighbour_rows_source *p = context;
	const struct neighbour_parent *parent =
		row->group > DELEGATED_MAX ? &p->parents[row->group - DELEGATED_MAX - 1] : NULL;
	const struct delegated *of =
		row->group && !parent ? &p->delegated.items[row->group - 1] : NULL;

	row->uid = of ? of->uid : 0;
	row->path = NULL;
	if (row->cgroups > 1 && (of || parent)) {
		row->cgroup_id = parent ? parent->id : of->id;
		row->path = strdup(parent ? parent->path : of->path);
	}
	cgroup_names_fill(p->names, p->cgroups, row->cgroup_id, &row->path, &row->unnamed);
}

struct neighbour_names neighbour_rows_names(struct neighbour_rows_source *p,
					    struct cgroup_names *names, struct cgroups *cgroups)
{
	*p = (struct neighbour_rows_source){ .names = names, .cgroups = cgroups };
	idmap_init(&p->by_path, NEIGHBOUR_PARENTS);
	return (struct neighbour_names){
		.group = find_group, .parent = find_parent, .name = name_row, .context = p
	};
}

void neighbour_rows_source_done(struct neighbour_rows_source *p)
{
	delegated_done(&p->delegated);
	for (size_t i = 0; i < p->n_parents; i++)
		free(p->parents[i].path);
	free(p->parents);
	idmap_done(&p->by_path);
	p->parents = NULL;
	p->n_parents = 0;
}
