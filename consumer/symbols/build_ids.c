/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/build_ids.h"

#include <string.h>

#include "consumer/symbols/modules.h"
#include "consumer/symbols/symbols_hash.h"
#include "shared/elf/elf_symbols.h"
#include "shared/tools/macro.h"

void build_ids_init(struct build_ids *b, uint64_t seed)
{
	idmap_init(&b->files, SYMBOLS_MODULES_MAX);
	b->seed = seed;
}

void build_ids_done(struct build_ids *b)
{
	idmap_done(&b->files);
}

static uint64_t key_of(const struct build_ids *b, const uint8_t *id, uint8_t bytes)
{
	uint8_t padded[BUILD_ID_BYTES] = { 0 };

	memcpy(padded, id, bytes);
	return symbols_hash(b->seed, padded, sizeof(padded));
}

void build_ids_add(struct build_ids *b, struct module *m)
{
	uint64_t key;

	if (m->listed || !m->identified || m->build_id_bytes > BUILD_ID_BYTES)
		return;
	key = key_of(b, m->build_id, m->build_id_bytes);
	m->same_id = idmap_get(&b->files, key);
	if (idmap_put(&b->files, key, m) < 0)
		m->same_id = NULL;
	m->listed = true;
	b->changes++;
}

void build_ids_remove(struct build_ids *b, struct module *m)
{
	uint64_t key = key_of(b, m->build_id, MIN(m->build_id_bytes, (uint8_t)BUILD_ID_BYTES));
	struct module *first = idmap_get(&b->files, key), **place = &first;

	while (*place && *place != m)
		place = &(*place)->same_id;
	if (!m->listed || !*place)
		return;
	*place = m->same_id;
	m->same_id = NULL;
	m->listed = false;
	b->changes++;
	if (first)
		idmap_put(&b->files, key, first);
	else
		idmap_remove(&b->files, key);
}

bool build_ids_tell(const uint8_t *id, uint8_t bytes)
{
	while (bytes > 0 && id[bytes - 1] == 0)
		bytes--;
	return bytes >= BUILD_ID_BYTES_MIN;
}

/* Modules in the table are identified: their build-ids do not change any more. */
static struct module *skip_others(struct module *m, const uint8_t *id, uint8_t bytes)
{
	while (m && !build_ids_same(m->build_id, m->build_id_bytes, id, bytes))
		m = m->same_id;
	return m;
}

struct module *build_ids_first(const struct build_ids *b, const uint8_t *id, uint8_t bytes)
{
	if (bytes > BUILD_ID_BYTES || !build_ids_tell(id, bytes))
		return NULL;
	return skip_others(idmap_get(&b->files, key_of(b, id, bytes)), id, bytes);
}

struct module *build_ids_next(const struct module *m)
{
	return skip_others(m->same_id, m->build_id, m->build_id_bytes);
}

bool build_ids_same(const uint8_t *a, uint8_t a_bytes, const uint8_t *b, uint8_t b_bytes)
{
	uint8_t x[BUILD_ID_BYTES_MAX] = { 0 }, y[BUILD_ID_BYTES_MAX] = { 0 };

	memcpy(x, a, a_bytes);
	memcpy(y, b, b_bytes);
	return memcmp(x, y, sizeof(x)) == 0;
}
