/* SPDX-License-Identifier: BSD-2-Clause */
/* build_ids.h: finds modules by the build-id read from their file. Symbolizer thread only. */
#ifndef TROCAR_CONSUMER_SYMBOLS_BUILD_IDS_H
#define TROCAR_CONSUMER_SYMBOLS_BUILD_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/symbols/symbols.h"
#include "shared/tools/idmap.h"

struct build_ids {
	struct idmap files; /* hash of a build-id -> the first module of a chain by `same_id` */
	uint64_t seed;	    /* of the hash, because build-ids are untrusted */
	uint32_t changes;   /* grows when modules are added or removed */
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
 * build_ids_first returns the first module with that build-id, build_ids_next the one after `m`;
 * NULL if there is none, or for a build-id without meaning (build_ids_tell).
 */
struct module *build_ids_first(const struct build_ids *b, const uint8_t *id, uint8_t bytes);
struct module *build_ids_next(const struct module *m);

/*
 * Returns whether a build-id identifies a build. One of fewer than BUILD_ID_BYTES_MIN bytes was
 * made by hand, and does not; the kernel may have padded it with zeros.
 */
bool build_ids_tell(const uint8_t *id, uint8_t bytes);

/*
 * Returns whether two build-ids are the same, allowing for zeros that the kernel may have appended
 * to one. At most 64 bytes.
 */
bool build_ids_same(const uint8_t *a, uint8_t a_bytes, const uint8_t *b, uint8_t b_bytes);

#endif
