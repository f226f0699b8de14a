/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/store/unwind_builds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/unwind/store/unwind_window.h"
#include "shared/tools/cleanup.h"

int unwind_builds_init(struct unwind_builds *b, uint32_t pool_elements)
{
	int r;

	*b = (struct unwind_builds){ .items = calloc(UNWIND_FILES_MAX, sizeof(*b->items)) };
	if (!b->items)
		return -ENOMEM;
	r = unwind_pool_init(&b->pool, pool_elements);
	if (r < 0)
		unwind_builds_done(b);
	return r;
}

void unwind_builds_done(struct unwind_builds *b)
{
	free(b->items);
	b->items = NULL;
	unwind_pool_done(&b->pool);
}

/* Gives up a build without a holder. */
static int give_up(struct unwind_builds *b, struct unwind_build *build)
{
	int r = unwind_pool_give(&b->pool, build->first, build->elements);

	if (r < 0)
		return r;
	b->rows -= build->rows;
	b->count--;
	b->evicted++;
	build->live = false;
	build->epoch++;
	return 0;
}

/* Returns the longest unused build among those without a holder, or NULL. */
static struct unwind_build *find_oldest(const struct unwind_builds *b)
{
	struct unwind_build *best = NULL;

	for (size_t i = 0; i < UNWIND_FILES_MAX; i++) {
		struct unwind_build *build = &b->items[i];

		if (build->live && build->holds == 0 && (!best || build->used < best->used))
			best = build;
	}
	return best;
}

/* Finds a free number; if there is none, gives up a build. */
static int find_free(struct unwind_builds *b, struct unwind_build **ret_build)
{
	struct unwind_build *build;
	int r;

	for (size_t i = 0; i < UNWIND_FILES_MAX; i++) {
		if (b->items[i].live)
			continue;
		*ret_build = &b->items[i];
		return 0;
	}
	build = find_oldest(b);
	if (!build)
		return -ENOSPC;
	r = give_up(b, build);
	if (r == 0)
		*ret_build = build;
	return r;
}

/* Takes space in the pool; gives up builds without a holder until there is enough. */
static int make_room(struct unwind_builds *b, uint32_t elements, uint32_t *ret_first)
{
	while (unwind_pool_take(&b->pool, elements, ret_first) < 0) {
		struct unwind_build *build = find_oldest(b);
		int r = build ? give_up(b, build) : -ENOSPC;

		if (r < 0)
			return r;
	}
	return 0;
}

/* Whether rows of one file are right for the other: two files may have the same build-id. */
static bool is_same_build(const struct unwind_layout *a, const struct unwind_layout *b)
{
	return a->digest == b->digest && a->build_id_bytes == b->build_id_bytes &&
	       memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
}

struct unwind_build *unwind_builds_find(struct unwind_builds *b, const struct unwind_layout *layout)
{
	for (size_t i = 0; layout->digest != 0 && i < UNWIND_FILES_MAX; i++) {
		struct unwind_build *build = &b->items[i];

		if (build->live && is_same_build(&build->layout, layout))
			return build;
	}
	return NULL;
}

static uint32_t share_ppm(uint64_t part, uint64_t all)
{
	return all ? (uint32_t)(part * 1000000 / all) : 0;
}

uint32_t unwind_builds_elements(const struct unwind_table *t)
{
	return t->row_count + (t->page_count + 1) / 2;
}

int unwind_builds_add(struct unwind_builds *b, const struct unwind_layout *layout,
		      const struct unwind_table *t, uint64_t compile_ns,
		      struct unwind_build **ret_build)
{
	uint32_t elements = unwind_builds_elements(t), first = 0;
	struct unwind_build *build;
	int r;

	r = find_free(b, &build);
	if (r == 0)
		r = make_room(b, elements, &first);
	if (r < 0)
		return r;
	*build = (struct unwind_build){
		.live = true,
		.epoch = build->epoch,
		.first = first,
		.elements = elements,
		.table_base = t->base,
		.compile_ns = compile_ns,
		.rows = t->row_count,
		.unsupported_ppm = share_ppm(t->counts.unsupported_bytes, t->counts.text_bytes),
		.layout = *layout,
	};
	unwind_builds_hold(b, build);
	b->rows += build->rows;
	b->count++;
	*ret_build = build;
	return 0;
}

int unwind_builds_write(const struct unwind_build *build, const struct unwind_table *t, int pool_fd,
			struct unwind_file *file)
{
	_cleanup_(unwind_window_close) struct unwind_window w = { 0 };
	uint64_t *to;
	int r;

	r = unwind_window_open(pool_fd, (uint64_t)build->first * sizeof(*to),
			       build->elements * sizeof(*to), &w);
	if (r < 0)
		return r;
	to = w.at;
	to[build->elements - 1] = 0; /* half of an element when the page count is odd */
	memcpy(to, t->rows, t->row_count * sizeof(*t->rows));
	memcpy(to + t->row_count, t->pages, t->page_count * sizeof(*t->pages));
	file->place = (struct unwind_place){ .rows = build->first,
					     .row_count = t->row_count,
					     .pages = build->first + t->row_count,
					     .page_count = t->page_count };
	return 0;
}

void unwind_builds_remove(struct unwind_builds *b, struct unwind_build *build)
{
	build->layout.digest = 0; /* if its elements stay taken, no find returns it */
	build->holds--;
	give_up(b, build);
}

void unwind_builds_hold(struct unwind_builds *b, struct unwind_build *build)
{
	build->holds++;
	build->used = ++b->uses;
}
