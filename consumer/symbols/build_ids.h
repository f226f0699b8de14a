/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * build_ids.h: finds modules by the build-id that was read from their file. Symbolizer thread only.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_BUILD_IDS_H
#define TROCAR_CONSUMER_SYMBOLS_BUILD_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/symbols/symbols.h"
#include "shared/tools/idmap.h"

struct build_ids {
	struct idmap files; /* hash of a build-id -> the first module of a chain by `same_id` */
	uint64_t seed;	    /* of the hash, because build-ids are foreign */
};

void build_ids_init(struct build_ids *b, uint64_t seed);
void build_ids_done(struct build_ids *b);

/*
 * Adds `m`, whose build-id was read, unless it is in the table or its build-id is longer than the
 * kernel reports.
 */
void build_ids_add(struct build_ids *b, struct module *m);

/* Removes `m` if it is in the table. */
void build_ids_remove(struct build_ids *b, struct module *m);

/*
 * Returns a module with that build-id, preferably one with a table; NULL when there is none, or for
 * 0 bytes.
 */
struct module *build_ids_find(const struct build_ids *b, const uint8_t *id, uint8_t bytes);

/*
 * Whether two build-ids are the same, when the kernel may have filled one up with zeros. At most 64
 * bytes.
 */
bool build_ids_same(const uint8_t *a, uint8_t a_bytes, const uint8_t *b, uint8_t b_bytes);

#endif
