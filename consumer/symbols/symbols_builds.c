/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which files belong to one build. A build-id alone does not prove it: linkers have given one
 * build-id to different programs. Symbolizer thread only.
 */
#include <string.h>

#include "consumer/symbols/symbols_internal.h"
#include "shared/elf/elf_digest.h"
#include "shared/elf/elf_symbols.h"
#include "shared/tools/cleanup.h"

/*
 * Limit of files that one search for a build-id requests from the broker; it takes the newest ones.
 */
#define BORROW_MAX 16

bool symbols_identify(struct symbols *s, struct module *m, const uint8_t *id, uint8_t bytes)
{
	bool same = true;

	pthread_mutex_lock(&s->modules.lock);
	if (m->build_id_bytes > 0)
		same = build_ids_same(m->build_id, m->build_id_bytes, id, bytes);
	if (!same)
		__atomic_store_n(&m->build_id_known, m->identified, __ATOMIC_RELAXED);
	if (same && bytes > 0) {
		memcpy(m->build_id, id, bytes);
		m->build_id_bytes = bytes;
		m->identified = true;
	}
	pthread_mutex_unlock(&s->modules.lock);
	build_ids_add(&s->ids, m);
	return same;
}

/* Returns the digest of the module's file, read once; 0: it cannot be read. */
static uint64_t digest_of(struct symbols *s, struct module *m)
{
	struct elf_image image = { .fd = -1 };

	if (m->digested)
		return m->digest;
	m->digested = true;
	if (module_file_open_any(&s->file, m, &image) == REASON_NONE &&
	    elf_digest_read(&image, ELF_DIGEST_NAMES, &m->digest) < 0)
		m->digest = 0;
	cleanup_close(&image.fd);
	return m->digest;
}

static bool is_copy(struct symbols *s, struct module *a, struct module *b)
{
	return a->identity.bytes == b->identity.bytes && digest_of(s, a) != 0 &&
	       digest_of(s, a) == digest_of(s, b);
}

/* Returns the first file of the chain that is known to have the build-id of `m`. */
static struct module *find_first(struct symbols *s, const struct module *m)
{
	uint8_t id[SYMBOLS_BUILD_ID_MAX], bytes = modules_id_of(&s->modules, m, id);

	return build_ids_first(&s->ids, id, bytes);
}

struct module *symbols_find_copy(struct symbols *s, struct module *m)
{
	for (struct module *i = find_first(s, m); i; i = build_ids_next(i))
		if (i != m && i->symbols && is_copy(s, m, i))
			return i;
	return NULL;
}

/* Whether the file may be the file of `m`, by its size. */
static bool may_be(const struct module *m, const struct module *file)
{
	return m != file && (m->identity.bytes == 0 || m->identity.bytes == file->identity.bytes);
}

struct module *symbols_find_sole(struct symbols *s, const struct module *m)
{
	struct module *sole = NULL;

	for (struct module *i = find_first(s, m); i; i = build_ids_next(i)) {
		if (!may_be(m, i))
			continue;
		if (sole && !is_copy(s, sole, i))
			return NULL;
		if (!sole || (i->symbols && !sole->symbols))
			sole = i;
	}
	return sole;
}

/* Reads the build-id of an opened file and closes the file. */
static void ask_image(struct symbols *s, struct module *m, struct elf_image *image)
{
	struct build_id id;

	if (build_id_read_mapped(image, &id) == 0)
		symbols_identify(s, m, id.bytes, id.n);
	cleanup_close(&image->fd);
}

/*
 * Requests a file from the broker once if the host's path does not lead to it. Returns false if
 * there is no need.
 */
static bool ask_broker(struct symbols *s, struct module *file)
{
	struct elf_image image = { .fd = -1 };

	if (file->path[0] != '/' || modules_has_id(&s->modules, file) || file->loaded ||
	    file->asked || !module_file_may_borrow(&s->file, file, REASON_NO_FILE))
		return false;
	file->asked = true;
	module_file_borrow(&s->file, file, REASON_NO_FILE, &image);
	if (image.fd >= 0)
		ask_image(s, file, &image);
	return true;
}

/*
 * Returns the file for which the kernel reported the build-id of `m`; NULL if there is none, or if
 * such files differ.
 */
static struct module *find_reported(struct symbols *s, const struct module *m)
{
	struct module *found = NULL;

	for (size_t i = s->identified; i-- > 0;) {
		struct module *file = modules_at(&s->modules, i);

		if (!modules_same_build_id(&s->modules, file, m))
			continue;
		if (found && !is_copy(s, found, file))
			return NULL;
		found = file;
	}
	return found;
}

/*
 * Finds the file of `m` among the files that the host's path does not lead to. Reads the build-ids
 * of the newest ones through the broker, each once.
 */
static struct module *find_borrowed(struct symbols *s, const struct module *m)
{
	uint8_t id[SYMBOLS_BUILD_ID_MAX], bytes = modules_id_of(&s->modules, m, id);
	size_t asked = 0;

	if (!build_ids_tell(id, bytes))
		return NULL;
	for (size_t i = s->identified; i-- > 0 && asked < BORROW_MAX && !find_first(s, m);)
		asked += ask_broker(s, modules_at(&s->modules, i));
	return find_first(s, m) ? symbols_find_sole(s, m) : find_reported(s, m);
}

/* Reads the build-ids of the files that were added. */
static void identify_files(struct symbols *s)
{
	struct module *file;

	while ((file = modules_at(&s->modules, s->identified)) != NULL) {
		struct elf_image image = { .fd = -1 };

		if (file->path[0] == '/' && !file->identified &&
		    module_file_open(file, &image) == REASON_NONE)
			ask_image(s, file, &image);
		s->identified++;
	}
}

struct module *symbols_resolve(struct symbols *s, struct module *m)
{
	identify_files(s);
	if (m->resolved && m->resolved_at == s->ids.changes)
		return m->resolved;
	m->resolved = symbols_find_sole(s, m);
	if (!find_first(s, m))
		m->resolved = find_borrowed(s, m);
	m->resolved_at = s->ids.changes;
	return m->resolved;
}
