/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h: things that are kept once: byte strings (names, frames, stacks, any key without padding)
 * get a number from 0 on, the same bytes the same number. What pools hold is counted against one
 * budget, so that a file without end is refused with a number and not by the machine.
 */
#ifndef TROCAR_CTL_EVENTS_POOL_H
#define TROCAR_CTL_EVENTS_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool_budget {
	uint64_t used_bytes, max_bytes;
};

struct pool_item {
	uint64_t offset; /* in data */
	uint32_t bytes;
	uint32_t hash; /* its upper half */
};

/* The hash stands here too: what is another's is seen without going there. */
struct pool_place {
	uint32_t item; /* + 1; 0: free */
	uint32_t hash;
};

struct pool {
	struct pool_budget *budget; /* borrowed */
	char *data;
	uint64_t data_bytes, data_space;
	struct pool_item *items;
	uint32_t count, space;
	struct pool_place *places; /* hash table */
	uint32_t n_places;
};

/* An empty pool; no allocation yet. Release with pool_done. */
void pool_init(struct pool *p, struct pool_budget *budget);
void pool_done(struct pool *p);

/* The number of these bytes, which are copied when they are new. 0, -ENOMEM, -ENOSPC: the budget.
 */
int pool_put(struct pool *p, const void *data, size_t bytes, uint32_t *ret_number);

/* Whether these bytes are there: 0 and their number, or -ENOENT. */
int pool_find(const struct pool *p, const void *data, size_t bytes, uint32_t *ret_number);

/* The bytes of a number, 8-byte aligned, with a NUL behind; until the next pool_put. */
const void *pool_get(const struct pool *p, uint32_t number, size_t *ret_bytes);

/* A string of the pool, for those without NUL inside. */
const char *pool_text(const struct pool *p, uint32_t number);

/*
 * Makes an array of `*space` elements of `each` bytes hold at least `count`, the new ones zeroed.
 * 0, -ENOMEM, -ENOSPC.
 */
int pool_grow(struct pool_budget *budget, void **array, uint32_t *space, uint32_t count,
	      size_t each);

/* A hash that the author of the bytes cannot foresee. */
uint64_t pool_hash(const void *data, size_t bytes);

/* Takes its seed from the kernel, once; to be called before the first foreign byte. */
void pool_seed(void);

#endif
