/* SPDX-License-Identifier: BSD-2-Clause */
/* idmap.h: a hash table from non-zero 64-bit ids to pointers; open addressing, bounded. */
#ifndef TROCAR_SHARED_TOOLS_IDMAP_H
#define TROCAR_SHARED_TOOLS_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct idmap {
	uint64_t *ids; /* 0 = free place */
	void **values; /* borrowed: the table owns no value */
	size_t count;
	size_t space; /* power of two, 0 before the first put */
	size_t max;   /* wall for count */
};

/* An empty table that never holds more than `max` entries. Release with idmap_done. */
void idmap_init(struct idmap *m, size_t max);
void idmap_done(struct idmap *m);

/* The value, or NULL. */
void *idmap_get(const struct idmap *m, uint64_t id);

/* Adds or replaces; id and value non-zero. 0, -ENOMEM, -ENOSPC at the wall, -EINVAL. */
int idmap_put(struct idmap *m, uint64_t id, void *value);

/* Takes the entry out and returns its value, or NULL. */
void *idmap_remove(struct idmap *m, uint64_t id);

/* Next entry from place *i on (start with 0); NULL at the end. No put or remove meanwhile. */
void *idmap_next(const struct idmap *m, size_t *i, uint64_t *ret_id);

#define idmap_for_each(m, i, id, value) for (size_t i = 0; ((value) = idmap_next((m), &i, &(id)));)

/* A hash of a text as a key, never 0; texts that may come from outside can collide. */
uint64_t idmap_text_key(const char *text);

#endif
