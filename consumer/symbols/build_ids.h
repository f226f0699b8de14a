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
	uint32_t changes;   /* modules that came or went */
};

void build_ids_init(struct build_ids *b, uint64_t seed);
void build_ids_done(struct build_ids *b);

/*
 * Adds `m` with its build-id, unless it is in the table or its build-id is longer than the kernel
 * reports.
 */
void build_ids_add(struct build_ids *b, struct module *m);

/* Removes `m` if it is in the table. */
void build_ids_remove(struct build_ids *b, struct module *m);

/*
 * Returns the first module with that build-id, as build_ids_next the one after `m`; NULL when there
 * is none, or for a build-id without meaning (build_ids_tell).
 */
struct module *build_ids_first(const struct build_ids *b, const uint8_t *id, uint8_t bytes);
struct module *build_ids_next(const struct module *m);

/*
 * Whether a build-id identifies a build: the kernel may have filled up with zeros one of fewer than
 * BUILD_ID_BYTES_MIN bytes, which was made by hand.
 */
bool build_ids_tell(const uint8_t *id, uint8_t bytes);

/*
 * Whether two build-ids are the same, when the kernel may have filled one up with zeros. At most 64
 * bytes.
 */
bool build_ids_same(const uint8_t *a, uint8_t a_bytes, const uint8_t *b, uint8_t b_bytes);

#endif
