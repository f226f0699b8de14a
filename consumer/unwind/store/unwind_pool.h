/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_pool.h: who has which elements of the pool that the kernel side reads rows from. It keeps
 * the account only; what may be given back when is the caller's matter. Not for several threads.
 */
#ifndef TROCAR_CONSUMER_UNWIND_POOL_H
#define TROCAR_CONSUMER_UNWIND_POOL_H

#include <stddef.h>
#include <stdint.h>

/* Elements [first, first + count) that nobody has. */
struct unwind_extent {
	uint32_t first, count;
};

struct unwind_pool {
	struct unwind_extent *free; /* owned; ascending, none touches the next */
	size_t count, space;
	uint32_t size, used; /* elements */
};

/* All of `size` elements free. 0, -ENOMEM. Release with unwind_pool_done. */
int unwind_pool_init(struct unwind_pool *p, uint32_t size);
void unwind_pool_done(struct unwind_pool *p);

/* Takes `count` elements, at least one, from the lowest place where they fit. 0, -ENOSPC. */
int unwind_pool_take(struct unwind_pool *p, uint32_t count, uint32_t *ret_first);

/* Gives back what was taken as such. 0; -ENOMEM: it stays taken. */
int unwind_pool_give(struct unwind_pool *p, uint32_t first, uint32_t count);

#endif
