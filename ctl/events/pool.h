/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h: stores byte strings once each (names, frames, stacks, any key without padding). Each gets
 * a number, from 0 on; equal bytes get the same number. The memory of pools counts against one
 * budget, so that an endless file is refused at a known limit, before the machine runs out of
 * memory.
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
	uint32_t hash; /* upper half of the hash */
};

/* The hash is also here, so that a lookup rejects another item without reading it. */
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

/*
 * Finds the number of these bytes, and copies them if they are new. 0, -ENOMEM, -ENOSPC: the budget
 * is used up.
 */
int pool_put(struct pool *p, const void *data, size_t bytes, uint32_t *ret_number);

/* Finds the number of these bytes. 0, or -ENOENT. */
int pool_find(const struct pool *p, const void *data, size_t bytes, uint32_t *ret_number);

/*
 * Returns the bytes of a number, 8-byte aligned, with a NUL after them; valid until the next
 * pool_put.
 */
const void *pool_get(const struct pool *p, uint32_t number, size_t *ret_bytes);

/* Returns a string of the pool; only for bytes without a NUL inside. */
const char *pool_text(const struct pool *p, uint32_t number);

/*
 * Grows an array of `*space` elements of `each` bytes to at least `count` elements, the new ones
 * zeroed. 0, -ENOMEM, -ENOSPC.
 */
int pool_grow(struct pool_budget *budget, void **array, uint32_t *space, uint32_t count,
	      size_t each);

/* Returns a hash that the author of the bytes cannot predict. */
uint64_t pool_hash(const void *data, size_t bytes);

/*
 * Reads the seed of the hash from the kernel, once. Call it before the first foreign byte is read.
 */
void pool_seed(void);

#endif
