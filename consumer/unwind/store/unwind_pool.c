/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/store/unwind_pool.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/array.h"
#include "shared/tools/macro.h"

int unwind_pool_init(struct unwind_pool *p, uint32_t size)
{
	struct unwind_extent *free = malloc(sizeof(*free));

	if (!free)
		return -ENOMEM;
	*free = (struct unwind_extent){ .count = size };
	*p = (struct unwind_pool){ .free = free, .count = size > 0, .space = 1, .size = size };
	return 0;
}

void unwind_pool_done(struct unwind_pool *p)
{
	free(p->free);
	*p = (struct unwind_pool){ 0 };
}

static void drop_extent(struct unwind_pool *p, size_t at)
{
	memmove(&p->free[at], &p->free[at + 1], (p->count - at - 1) * sizeof(*p->free));
	p->count--;
}

int unwind_pool_take(struct unwind_pool *p, uint32_t count, uint32_t *ret_first)
{
	for (size_t i = 0; i < p->count; i++) {
		struct unwind_extent *e = &p->free[i];

		if (e->count < count)
			continue;
		*ret_first = e->first;
		e->first += count;
		e->count -= count;
		p->used += count;
		if (e->count == 0)
			drop_extent(p, i);
		return 0;
	}
	return -ENOSPC;
}

static int insert_extent(struct unwind_pool *p, size_t at, struct unwind_extent e)
{
	if (array_reserve(&p->free, &p->space, p->count + 1, sizeof(*p->free)) < 0)
		return -ENOMEM;
	memmove(&p->free[at + 1], &p->free[at], (p->count - at) * sizeof(*p->free));
	p->free[at] = e;
	p->count++;
	return 0;
}

int unwind_pool_give(struct unwind_pool *p, uint32_t first, uint32_t count)
{
	size_t at = 0;
	bool below, above;

	while (at < p->count && p->free[at].first < first)
		at++;
	below = at > 0 && p->free[at - 1].first + p->free[at - 1].count == first;
	above = at < p->count && first + count == p->free[at].first;
	if (!below && !above) {
		int r = insert_extent(p, at, (struct unwind_extent){ first, count });

		if (r < 0)
			return r;
	} else if (below) {
		p->free[at - 1].count += count;
		if (above) {
			p->free[at - 1].count += p->free[at].count;
			drop_extent(p, at);
		}
	} else {
		p->free[at].first = first;
		p->free[at].count += count;
	}
	p->used -= count;
	return 0;
}
