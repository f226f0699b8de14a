/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/neighbour_rows.h"

#include <stdlib.h>
#include <string.h>

#include "consumer/cgroup/cgroup_names.h"
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
	named = MIN(count, kind->named);
	for (size_t i = 0; i < named; i++)
		names->name(names->context, row_at(items, i, kind));
	for (size_t i = named; i < count; i++) {
		kind->add(rest, row_at(items, i, kind));
		((struct neighbour_row *)rest)->cgroups += row_at(items, i, kind)->cgroups;
	}
	return named;
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

static void name_row(void *context, struct neighbour_row *row)
{
	struct neighbour_rows_source *p = context;
	const struct delegated *of = row->group ? &p->delegated.items[row->group - 1] : NULL;

	row->uid = of ? of->uid : 0;
	row->path = NULL;
	if (of && row->cgroups > 1) {
		row->cgroup_id = of->id;
		row->path = strdup(of->path);
	}
	cgroup_names_fill(p->names, p->cgroups, row->cgroup_id, &row->path, &row->unnamed);
}

struct neighbour_names neighbour_rows_names(struct neighbour_rows_source *p,
					    struct cgroup_names *names, struct cgroups *cgroups)
{
	*p = (struct neighbour_rows_source){ .names = names, .cgroups = cgroups };
	return (struct neighbour_names){ find_group, name_row, p };
}

void neighbour_rows_source_done(struct neighbour_rows_source *p)
{
	delegated_done(&p->delegated);
}
