/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/asides.h"

#include <stdlib.h>

#include "shared/tools/macro.h"

void asides_init(struct asides *a, struct store *store)
{
	*a = (struct asides){ 0 };
	pool_init(&a->kinds, &store->budget);
}

void asides_done(struct asides *a)
{
	pool_done(&a->kinds);
	free(a->rows);
	a->rows = NULL;
}

static int find_kind(struct store *store, const struct event *event, struct aside_kind *ret_kind)
{
	struct aside_kind kind = { event->type, STORE_NONE, STORE_NONE, STORE_NONE };
	int r;

	if (event->type == EVENT_ERROR) {
		r = store_text(store, &event->code, &kind.what);
	} else if (event->type == EVENT_HELD) {
		r = store_text(store, &event->reason, &kind.what);
		if (r == 0)
			r = store_text(store,
				       event->resource.data ? &event->resource : &event->trigger,
				       &kind.of);
		if (r == 0)
			r = store_text(store, &event->cgroup, &kind.where);
	} else {
		r = 0;
	}
	if (r == 0)
		*ret_kind = kind;
	return r;
}

static void add_held(struct aside *row, const struct event *event)
{
	bool sums = event->repeats > 0;

	row->count = store_sum(row->count, sums ? event->repeats : 1);
	row->largest_ms = MAX(row->largest_ms, sums ? event->largest_ms : event->stall_ms);
	row->sum_ms = store_sum(row->sum_ms, sums ? event->sum_ms : event->stall_ms);
}

int asides_take(struct asides *a, struct store *store, const struct event *event, uint64_t time_ns,
		const char *line, size_t bytes)
{
	struct aside_kind kind;
	uint32_t number = 0, text = 0;
	struct aside *row;
	int r = find_kind(store, event, &kind);

	if (r == 0)
		r = pool_put(&a->kinds, &kind, sizeof(kind), &number);
	if (r == 0)
		r = pool_grow(a->kinds.budget, (void **)&a->rows, &a->space, number + 1,
			      sizeof(*a->rows));
	if (r == 0)
		r = pool_put(&store->texts, line, bytes, &text);
	if (r < 0)
		return r;
	row = &a->rows[number];
	if (event->type == EVENT_HELD)
		add_held(row, event);
	else
		row->count++;
	if (time_ns >= row->time_ns) {
		row->line = text;
		row->time_ns = time_ns;
	}
	return 0;
}

const struct aside_kind *asides_kind(const struct asides *a, uint32_t row)
{
	size_t bytes;

	return pool_get(&a->kinds, row, &bytes);
}
