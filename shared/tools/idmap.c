/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/idmap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "shared/tools/cleanup.h"

#define FIRST_SPACE 16u

/* The finaliser of MurmurHash3: cgroup ids and addresses differ in few bits, and must be mixed. */
static uint64_t mix_bits(uint64_t id)
{
	id ^= id >> 33;
	id *= 0xff51afd7ed558ccdULL;
	id ^= id >> 33;
	id *= 0xc4ceb9fe1a85ec53ULL;
	return id ^ (id >> 33);
}

/* Returns the place of the id, or the free place for it. At least one place is always free. */
static size_t seek_place(const uint64_t *ids, size_t space, uint64_t id)
{
	size_t i = (size_t)mix_bits(id) & (space - 1);

	while (ids[i] && ids[i] != id)
		i = (i + 1) & (space - 1);
	return i;
}

void idmap_init(struct idmap *m, size_t max)
{
	*m = (struct idmap){ .max = max };
}

void idmap_done(struct idmap *m)
{
	free(m->ids);
	free(m->values);
	*m = (struct idmap){ .max = m->max };
}

void idmap_free(struct idmap *m, void (*free_value)(void *value))
{
	uint64_t id;
	void *value;

	idmap_for_each (m, i, id, value)
		free_value(value);
	idmap_done(m);
}

void *idmap_get(const struct idmap *m, uint64_t id)
{
	size_t i;

	if (!m->space || !id)
		return NULL;
	i = seek_place(m->ids, m->space, id);
	return m->ids[i] ? m->values[i] : NULL;
}

static int grow_map(struct idmap *m)
{
	size_t space = m->space ? m->space * 2 : FIRST_SPACE;
	_cleanup_free_ uint64_t *ids = NULL;
	_cleanup_free_ void **values = NULL;

	ids = calloc(space, sizeof(*ids));
	values = calloc(space, sizeof(*values));
	if (!ids || !values)
		return -ENOMEM;
	for (size_t i = 0; i < m->space; i++) {
		size_t to;

		if (!m->ids[i])
			continue;
		to = seek_place(ids, space, m->ids[i]);
		ids[to] = m->ids[i];
		values[to] = m->values[i];
	}
	free(m->ids);
	free(m->values);
	m->ids = TAKE_PTR(ids);
	m->values = TAKE_PTR(values);
	m->space = space;
	return 0;
}

int idmap_put(struct idmap *m, uint64_t id, void *value)
{
	size_t i;
	int r;

	if (!id || !value)
		return -EINVAL;
	if (m->space) {
		i = seek_place(m->ids, m->space, id);
		if (m->ids[i]) {
			m->values[i] = value;
			return 0;
		}
	}
	if (m->count >= m->max)
		return -ENOSPC;
	if ((m->count + 1) * 4 > m->space * 3) { /* above three quarters probes become long */
		r = grow_map(m);
		if (r < 0)
			return r;
	}
	i = seek_place(m->ids, m->space, id);
	m->ids[i] = id;
	m->values[i] = value;
	m->count++;
	return 0;
}

/* Returns whether the entry at `at`, with a probe that began at `home`, may move back to `hole`. */
static bool is_reachable(size_t home, size_t hole, size_t at)
{
	return hole <= at ? home <= hole || home > at : home <= hole && home > at;
}

void *idmap_remove(struct idmap *m, uint64_t id)
{
	size_t hole, at;
	void *value;

	if (!m->space || !id)
		return NULL;
	hole = seek_place(m->ids, m->space, id);
	if (!m->ids[hole])
		return NULL;
	value = m->values[hole];
	/*
	 * Move later entries into the gap, so that no tombstones accumulate in a table that lives
	 * for months.
	 */
	for (at = (hole + 1) & (m->space - 1); m->ids[at]; at = (at + 1) & (m->space - 1)) {
		if (!is_reachable((size_t)mix_bits(m->ids[at]) & (m->space - 1), hole, at))
			continue;
		m->ids[hole] = m->ids[at];
		m->values[hole] = m->values[at];
		hole = at;
	}
	m->ids[hole] = 0;
	m->values[hole] = NULL;
	m->count--;
	/* Many entries are rare: free a large table once it is empty. */
	if (!m->count && m->space > FIRST_SPACE)
		idmap_done(m);
	return value;
}

size_t idmap_bytes(const struct idmap *m)
{
	return m->space * (sizeof(*m->ids) + sizeof(*m->values));
}

void *idmap_next(const struct idmap *m, size_t *i, uint64_t *ret_id)
{
	for (; *i < m->space; (*i)++) {
		if (!m->ids[*i])
			continue;
		*ret_id = m->ids[*i];
		return m->values[(*i)++];
	}
	return NULL;
}

/* FNV-1a; 0, which is no valid id, becomes 1. */
uint64_t idmap_text_key(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ULL;
	return hash ? hash : 1;
}
