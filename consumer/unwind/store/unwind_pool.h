/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_pool.h: tracks which elements of the pool, from which the kernel side reads rows, are in
 * use. It only keeps the account; the caller decides when elements may be returned. One thread at a
 * time.
 */
#ifndef TROCAR_CONSUMER_UNWIND_STORE_UNWIND_POOL_H
#define TROCAR_CONSUMER_UNWIND_STORE_UNWIND_POOL_H

#include <stddef.h>
#include <stdint.h>

/* Elements [first, first + count), which are free. */
struct unwind_extent {
	uint32_t first, count;
};

struct unwind_pool {
	struct unwind_extent *free; /* owned; ascending, with used elements between any two */
	size_t count, space;
	uint32_t size, used; /* elements */
};

/* Initialises a pool of `size` free elements. 0, -ENOMEM. Release with unwind_pool_done. */
int unwind_pool_init(struct unwind_pool *p, uint32_t size);
void unwind_pool_done(struct unwind_pool *p);

/*
 * Takes `count` elements, at least one, from the lowest position with space. Returns 0 or -ENOSPC.
 */
int unwind_pool_take(struct unwind_pool *p, uint32_t count, uint32_t *ret_first);

/*
 * Returns the elements of one unwind_pool_take to the pool. Returns 0; -ENOMEM: they stay in use.
 */
int unwind_pool_give(struct unwind_pool *p, uint32_t first, uint32_t count);

#endif
