/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "consumer/symbols/build_ids.h"
#include "consumer/symbols/pretty.h"
#include "consumer/symbols/symbols_hash.h"
#include "shared/elf/elf_symbols.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define DELETED_SUFFIX " (deleted)" /* the suffix of fs/d_path.c */

void modules_free(struct module *m)
{
	if (!m)
		return;
	pretty_free(m->pretty);
	elf_symbols_free(m->symbols);
	free(m->links);
	free(m->path);
	free(m);
}

static void module_freep(struct module **m)
{
	modules_free(*m);
}

void modules_init(struct modules *t)
{
	const void *random = (const void *)getauxval(AT_RANDOM);

	*t = (struct modules){ 0 };
	pthread_mutex_init(&t->lock, NULL);
	idmap_init(&t->by_file, SYMBOLS_MODULES_MAX);
	idmap_init(&t->by_id, SYMBOLS_MODULES_MAX);
	if (random)
		memcpy(&t->seed, random, sizeof(t->seed));
}

void modules_done(struct modules *t)
{
	for (size_t i = 0; i < t->count; i++)
		modules_free(t->items[i]);
	free(t->items);
	idmap_done(&t->by_file);
	idmap_done(&t->by_id);
	pthread_mutex_destroy(&t->lock);
}

/* Reserves space in the list of modules; call with the lock held. */
static int reserve_module(struct modules *t)
{
	size_t space = MAX(t->space * 2, (size_t)64);
	struct module **more;

	if (t->count == SYMBOLS_MODULES_MAX) {
		t->refused++;
		return -ENOSPC;
	}
	if (t->count < t->space)
		return 0;
	more = realloc(t->items, space * sizeof(struct module *));
	if (!more)
		return -ENOMEM;
	t->items = more;
	t->space = space;
	return 0;
}

/* Puts a new module into a map and the list, which own it on success; call with the lock held. */
static int enlist_module(struct modules *t, struct idmap *map, uint64_t key, struct module *m)
{
	int r;

	r = reserve_module(t);
	if (r < 0)
		return r;
	m->next = idmap_get(map, key);
	r = idmap_put(map, key, m);
	if (r < 0)
		return r;
	t->items[t->count++] = m;
	return 0;
}

/* Returns the length of the path without d_path's mark for a removed file. */
static size_t bare_bytes(const char *path, bool *ret_deleted)
{
	size_t bytes = strlen(path), suffix = strlen(DELETED_SUFFIX);

	*ret_deleted = bytes > suffix && strcmp(path + bytes - suffix, DELETED_SUFFIX) == 0;
	return *ret_deleted ? bytes - suffix : bytes;
}

static int module_new(const struct file_identity *identity, const char *path, size_t path_bytes,
		      struct module **ret_module)
{
	_cleanup_(module_freep) struct module *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->path = strndup(path, path_bytes);
	if (!m->path)
		return -ENOMEM;
	m->identity = *identity;
	*ret_module = TAKE_PTR(m);
	return 0;
}

/* Compares each member: the struct may have padding. */
static bool is_identity(const struct file_identity *a, const struct file_identity *b)
{
	return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
	       a->changed_ns == b->changed_ns && a->written_ns == b->written_ns &&
	       a->generation == b->generation;
}

static uint64_t hash_file(const struct modules *t, const struct file_identity *identity,
			  const char *path, size_t path_bytes)
{
	const uint64_t words[] = {
		identity->device,     identity->inode,	    identity->bytes,
		identity->changed_ns, identity->written_ns, identity->generation
	};

	uint64_t key = t->seed;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		key = (key ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		key ^= key >> 29;
	}
	return symbols_hash(key, path, path_bytes);
}

/* Finds or makes the module; call with the lock held. */
static int find_file(struct modules *t, const struct file_identity *identity, const char *path,
		     bool anonymous, struct module **ret_module)
{
	_cleanup_(module_freep) struct module *m = NULL;
	bool deleted;
	size_t bytes = bare_bytes(path, &deleted);
	uint64_t key = hash_file(t, identity, path, bytes);
	int r;

	for (struct module *i = idmap_get(&t->by_file, key); i; i = i->next) {
		if (is_identity(&i->identity, identity) && i->anonymous == anonymous &&
		    i->deleted == deleted && strlen(i->path) == bytes &&
		    memcmp(i->path, path, bytes) == 0) {
			*ret_module = i;
			return 0;
		}
	}
	r = module_new(identity, path, bytes, &m);
	if (r < 0)
		return r;
	m->anonymous = anonymous;
	m->deleted = deleted;
	r = enlist_module(t, &t->by_file, key, m);
	if (r < 0)
		return r;
	*ret_module = TAKE_PTR(m);
	return 0;
}

int modules_file(struct modules *t, const struct file_identity *identity, const char *path,
		 bool anonymous, struct module **ret_module)
{
	int r;

	if (path[0] == '\0' || strnlen(path, SYMBOLS_PATH_BYTES) == SYMBOLS_PATH_BYTES)
		return -EINVAL;
	pthread_mutex_lock(&t->lock);
	r = find_file(t, identity, path, anonymous, ret_module);
	pthread_mutex_unlock(&t->lock);
	return r;
}

/*
 * The kernel pads a shorter build-id with zeros (lib/buildid.c, parse_build_id). The common lengths
 * are 20 (SHA-1), 16 (MD5, UUID) and 8 (xxhash).
 */
uint8_t modules_build_id_bytes(const uint8_t id[BUILD_ID_BYTES])
{
	static const uint8_t zeros[BUILD_ID_BYTES];

	if (memcmp(id + 8, zeros, BUILD_ID_BYTES - 8) == 0)
		return 8;
	return memcmp(id + 16, zeros, BUILD_ID_BYTES - 16) == 0 ? 16 : BUILD_ID_BYTES;
}

static int find_build_id(struct modules *t, const uint8_t id[BUILD_ID_BYTES],
			 struct module **ret_module)
{
	uint64_t key = symbols_hash(t->seed, id, BUILD_ID_BYTES);
	_cleanup_(module_freep) struct module *m = NULL;
	int r;

	for (struct module *i = idmap_get(&t->by_id, key); i; i = i->next) {
		if (memcmp(i->build_id, id, BUILD_ID_BYTES) == 0) {
			i->released_ns = clock_mono_ns();
			*ret_module = i;
			return 0;
		}
	}
	r = module_new(&(struct file_identity){ 0 }, "", 0, &m);
	if (r < 0)
		return r;
	memcpy(m->build_id, id, BUILD_ID_BYTES);
	m->build_id_bytes = modules_build_id_bytes(id);
	m->released_ns = clock_mono_ns();
	r = enlist_module(t, &t->by_id, key, m);
	if (r < 0)
		return r;
	*ret_module = TAKE_PTR(m);
	return 0;
}

int modules_build_id(struct modules *t, const uint8_t build_id[BUILD_ID_BYTES],
		     struct module **ret_module)
{
	int r;

	pthread_mutex_lock(&t->lock);
	r = find_build_id(t, build_id, ret_module);
	pthread_mutex_unlock(&t->lock);
	return r;
}

struct module *modules_at(struct modules *t, size_t i)
{
	struct module *m;

	pthread_mutex_lock(&t->lock);
	m = i < t->count ? t->items[i] : NULL;
	pthread_mutex_unlock(&t->lock);
	return m;
}

void modules_place(struct modules *t, struct module *m, const struct module_place *place)
{
	bool known = false;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < MIN(m->place_count, (uint32_t)MODULE_PLACES); i++)
		known = known || memcmp(&m->places[i], place, sizeof(*place)) == 0;
	if (!known) {
		m->places[m->place_count % MODULE_PLACES] = *place;
		__atomic_store_n(&m->place_count, m->place_count + 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&t->lock);
}

/* Removes the module from the table; call with the lock held. */
static void delist_module(struct modules *t, struct module *m)
{
	bool by_id = m->path[0] == '\0';
	uint64_t key = by_id ? symbols_hash(t->seed, m->build_id, BUILD_ID_BYTES)
			     : hash_file(t, &m->identity, m->path, strlen(m->path));
	struct idmap *map = by_id ? &t->by_id : &t->by_file;
	struct module *first = idmap_get(map, key), **place = &first;

	while (*place && *place != m)
		place = &(*place)->next;
	if (!*place)
		return;
	*place = m->next;
	m->next = NULL;
	if (first)
		idmap_put(map, key, first);
	else
		idmap_remove(map, key);
}

bool modules_learn_build_id(struct modules *t, struct module *m, const uint8_t *build_id)
{
	bool first, same;

	if (!build_id) {
		m->build_id_misses += m->build_id_misses < SYMBOLS_BUILD_ID_MISSES_MAX;
		return true;
	}
	pthread_mutex_lock(&t->lock);
	first = !m->build_id_known && !m->identified;
	if (first) {
		memcpy(m->build_id, build_id, BUILD_ID_BYTES);
		m->build_id_bytes = modules_build_id_bytes(build_id);
	}
	same = first || build_ids_same(m->build_id, m->build_id_bytes, build_id, BUILD_ID_BYTES);
	if (same)
		__atomic_store_n(&m->build_id_known, true, __ATOMIC_RELAXED);
	else
		delist_module(t, m);
	m->retired = m->retired || !same;
	pthread_mutex_unlock(&t->lock);
	m->build_id_doubted = false;
	return same;
}

uint8_t modules_id_of(struct modules *t, const struct module *m, uint8_t id[SYMBOLS_BUILD_ID_MAX])
{
	uint8_t bytes;

	pthread_mutex_lock(&t->lock);
	bytes = m->build_id_bytes;
	memcpy(id, m->build_id, bytes);
	pthread_mutex_unlock(&t->lock);
	return bytes;
}

bool modules_is(struct modules *t, const struct module *m, const uint8_t build_id[BUILD_ID_BYTES])
{
	bool same;

	pthread_mutex_lock(&t->lock);
	same = m->build_id_known && m->build_id_bytes <= BUILD_ID_BYTES &&
	       memcmp(m->build_id, build_id, BUILD_ID_BYTES) == 0;
	pthread_mutex_unlock(&t->lock);
	return same;
}

bool modules_has_id(struct modules *t, const struct module *m)
{
	uint8_t id[SYMBOLS_BUILD_ID_MAX];

	return modules_id_of(t, m, id) > 0;
}

bool modules_same_build_id(struct modules *t, const struct module *file, const struct module *m)
{
	bool same;

	pthread_mutex_lock(&t->lock);
	same = file->build_id_known &&
	       build_ids_same(file->build_id, file->build_id_bytes, m->build_id, m->build_id_bytes);
	pthread_mutex_unlock(&t->lock);
	return same;
}

bool modules_may_be(struct modules *t, const struct module *m, const uint8_t *build_id,
		    uint8_t bytes)
{
	bool same;

	pthread_mutex_lock(&t->lock);
	same = !m->build_id_known ||
	       build_ids_same(m->build_id, m->build_id_bytes, build_id, bytes);
	pthread_mutex_unlock(&t->lock);
	return same;
}

static int compare_releases(const void *a, const void *b)
{
	const struct module *const *x = a, *const *y = b;

	return (*x)->released_ns < (*y)->released_ns ? -1 : (*x)->released_ns > (*y)->released_ns;
}

/*
 * Collects in `found` the modules unused since before_ns, the longest unused first; call with the
 * lock held. Returns how many.
 */
static size_t find_unused(const struct modules *t, uint64_t before_ns, struct module **found)
{
	size_t count = 0;

	for (size_t i = 0; i < t->count; i++) {
		struct module *m = t->items[i];
		bool special = m->path[0] != '\0' && m->identity.inode == 0;

		if (!m->holds && !m->forgotten && !special && m->released_ns < before_ns)
			found[count++] = m;
	}
	qsort(found, count, sizeof(struct module *), compare_releases);
	return count;
}

size_t modules_forget(struct modules *t, size_t keep, uint64_t before_ns,
		      bool (*is_used)(void *context, const struct module *m), void *context)
{
	_cleanup_free_ struct module **found = NULL;
	size_t count, forgotten = 0;

	pthread_mutex_lock(&t->lock);
	if (t->count - t->forgotten > keep)
		found = calloc(t->count, sizeof(struct module *));
	count = found ? find_unused(t, before_ns, found) : 0;
	for (size_t i = 0;
	     i < count && forgotten < SYMBOLS_FORGET_MAX && t->count - t->forgotten > keep; i++) {
		if (is_used(context, found[i]))
			continue;
		delist_module(t, found[i]);
		found[i]->forgotten = true;
		t->forgotten++;
		forgotten++;
	}
	pthread_mutex_unlock(&t->lock);
	return forgotten;
}

struct module *modules_take_forgotten(struct modules *t, size_t *place)
{
	struct module *list = NULL;
	size_t kept = 0, before = *place;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; t->forgotten && i < t->count; i++) {
		struct module *m = t->items[i];

		if (!m->forgotten) {
			t->items[kept++] = m;
			continue;
		}
		m->taken = true;
		m->next = list;
		list = m;
		*place -= i < before;
	}
	if (t->forgotten)
		t->count = kept;
	t->forgotten = 0;
	pthread_mutex_unlock(&t->lock);
	return list;
}
