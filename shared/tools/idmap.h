/* SPDX-License-Identifier: BSD-2-Clause */
/* idmap.h: a hash table from non-zero 64-bit ids to pointers: open addressing, bounded. */
#ifndef TROCAR_SHARED_TOOLS_IDMAP_H
#define TROCAR_SHARED_TOOLS_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct idmap {
	uint64_t *ids; /* 0 = free place */
	void **values; /* borrowed: the table owns no value */
	size_t count;
	size_t space; /* power of two, 0 before the first put */
	size_t max;   /* limit of count */
};

/* Initialises an empty table for at most `max` entries. Release with idmap_done. */
void idmap_init(struct idmap *m, size_t max);
void idmap_done(struct idmap *m);

/* Frees each value by `free_value`, and the table. */
void idmap_free(struct idmap *m, void (*free_value)(void *value));

/* Returns the value of the id, or NULL. */
void *idmap_get(const struct idmap *m, uint64_t id);

/* Adds or replaces an entry; id and value are not 0. 0, -ENOMEM, -ENOSPC at the limit, -EINVAL. */
int idmap_put(struct idmap *m, uint64_t id, void *value);

/* Removes the entry and returns its value, or NULL. */
void *idmap_remove(struct idmap *m, uint64_t id);

/* Returns the memory of the table itself. */
size_t idmap_bytes(const struct idmap *m);

/*
 * Returns the next entry from place *i on (start with 0); NULL at the end. Do not put or remove
 * between calls.
 */
void *idmap_next(const struct idmap *m, size_t *i, uint64_t *ret_id);

#define idmap_for_each(m, i, id, value) for (size_t i = 0; ((value) = idmap_next((m), &i, &(id)));)

/* Returns a hash of a text as a key, never 0. An attacker can make texts that collide. */
uint64_t idmap_text_key(const char *text);

#endif
