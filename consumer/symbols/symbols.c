/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/symbols.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/symbols/elf_symbols.h"
#include "consumer/symbols/file.h"
#include "consumer/symbols/kernel.h"
#include "consumer/symbols/modules.h"
#include "consumer/symbols/reason.h"
#include "consumer/symbols/vdso.h"
#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/idmap.h"
#include "shared/macro.h"

struct symbols {
	struct modules modules; /* its lock is also for what symbols_stats reads */
	struct symbols_stats stats;
	/* the rest is the symbolizer thread's own */
	struct idmap files_by_id; /* hash of a build-id to the first of a chain by `same_id` */
	size_t identified;	  /* modules whose file was asked for its build-id */
	size_t max_bytes, table_bytes;
	struct module *newest, *oldest;		    /* modules with a table */
	uint32_t epoch;				    /* trims so far */
	char *ksyms_path;			    /* owned */
	struct kernel_symbols *kernel, *old_kernel; /* old: strings of it may still be held */
	uint64_t kernel_read_ns;		    /* last try, CLOCK_MONOTONIC; 0: never */
};

int symbols_new(size_t max_bytes, const char *ksyms_path, struct symbols **ret_symbols)
{
	_cleanup_free_ struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (ksyms_path) {
		s->ksyms_path = strdup(ksyms_path);
		if (!s->ksyms_path)
			return -ENOMEM;
	}
	modules_init(&s->modules);
	idmap_init(&s->files_by_id, SYMBOLS_MODULES_MAX);
	s->max_bytes = max_bytes;
	*ret_symbols = TAKE_PTR(s);
	return 0;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	modules_done(&s->modules);
	idmap_done(&s->files_by_id);
	kernel_symbols_free(s->kernel);
	kernel_symbols_free(s->old_kernel);
	free(s->ksyms_path);
	free(s);
}

int symbols_module(struct symbols *s, uint64_t device, uint64_t inode, const char *path,
		   bool anonymous, struct module **ret_module)
{
	return modules_file(&s->modules, device, inode, path, anonymous, ret_module);
}

int symbols_module_by_build_id(struct symbols *s, const uint8_t build_id[BUILD_ID_BYTES],
			       struct module **ret_module)
{
	return modules_build_id(&s->modules, build_id, ret_module);
}

/* ---- from here on the symbolizer thread */

static void unlink_table(struct symbols *s, struct module *m)
{
	*(m->newer ? &m->newer->older : &s->newest) = m->older;
	*(m->older ? &m->older->newer : &s->oldest) = m->newer;
	m->newer = m->older = NULL;
}

static void link_newest(struct symbols *s, struct module *m)
{
	m->older = s->newest;
	m->newer = NULL;
	*(s->newest ? &s->newest->newer : &s->oldest) = m;
	s->newest = m;
}

/* Accounts for `bytes` and `symbols` that came (or went, when `came` is false). */
static void account(struct symbols *s, size_t bytes, size_t symbols, bool came)
{
	pthread_mutex_lock(&s->modules.lock);
	s->stats.bytes += came ? bytes : -bytes;
	s->stats.symbols += came ? symbols : -symbols;
	pthread_mutex_unlock(&s->modules.lock);
}

static void evict(struct symbols *s, struct module *m)
{
	struct elf_symbols *table = m->symbols;

	unlink_table(s, m);
	s->table_bytes -= elf_symbols_bytes(table);
	account(s, elf_symbols_bytes(table), table->names.count, false);
	pthread_mutex_lock(&s->modules.lock);
	m->symbols = NULL;
	m->loaded = false;
	pthread_mutex_unlock(&s->modules.lock);
	elf_symbols_free(table);
}

/* Evicts tables whose strings nobody holds any more until there is room; false when there is none.
 */
static bool make_room(struct symbols *s)
{
	while (s->table_bytes >= s->max_bytes && s->oldest && s->oldest->epoch != s->epoch)
		evict(s, s->oldest);
	return s->table_bytes < s->max_bytes || s->table_bytes == 0;
}

/* Notes the file's build-id; false when it is not the one that the file had before. */
static bool identify(struct symbols *s, struct module *m, const uint8_t *id, uint8_t bytes)
{
	uint8_t padded[BUILD_ID_BYTES] = { 0 };
	uint64_t key;

	if (m->build_id_bytes > 0)
		return m->build_id_bytes == bytes && memcmp(m->build_id, id, bytes) == 0;
	if (bytes == 0)
		return true;
	pthread_mutex_lock(&s->modules.lock);
	memcpy(m->build_id, id, bytes);
	m->build_id_bytes = bytes;
	pthread_mutex_unlock(&s->modules.lock);
	if (bytes > BUILD_ID_BYTES)
		return true; /* the kernel never tells such a one */
	memcpy(padded, id, bytes);
	key = modules_hash(s->modules.seed, padded, sizeof(padded));
	m->same_id = idmap_get(&s->files_by_id, key);
	if (idmap_put(&s->files_by_id, key, m) < 0)
		m->same_id = NULL;
	return true;
}

/* Opens what the module stands for; image.fd is -1 for memory. */
static enum reason open_module(const struct module *m, struct elf_image *ret_image)
{
	if (m->anonymous)
		return REASON_ANONYMOUS;
	if (m->deleted)
		return REASON_DELETED;
	if (strcmp(m->path, "[vdso]") == 0)
		return vdso_image(ret_image) < 0 ? REASON_NO_FILE : REASON_NONE;
	return file_open(m->path, m->device, m->inode, ret_image);
}

/* Reads the table of a module that has none. */
static enum reason read_table(struct symbols *s, struct module *m)
{
	struct elf_symbols *table;
	struct elf_image image = { .fd = -1 };
	enum reason reason = open_module(m, &image);
	int r;

	if (reason != REASON_NONE)
		return reason;
	__atomic_fetch_add(&s->stats.files_read, 1, __ATOMIC_RELAXED);
	r = elf_symbols_read(&image, &table);
	cleanup_close(&image.fd);
	if (r < 0)
		return reason_of_elf(r);
	if (!identify(s, m, table->build_id, table->build_id_bytes)) {
		elf_symbols_free(table);
		return REASON_OTHER_FILE;
	}
	if (table->names.count == 0) {
		elf_symbols_free(table);
		return REASON_STRIPPED;
	}
	s->table_bytes += elf_symbols_bytes(table);
	account(s, elf_symbols_bytes(table), table->names.count, true);
	m->symbols = table;
	link_newest(s, m);
	return REASON_NONE;
}

/* Sees to it that the module's table is there; else ->unreadable or the returned word says why. */
static const char *load(struct symbols *s, struct module *m)
{
	enum reason reason;

	if (m->symbols)
		return NULL;
	if (m->loaded && (m->retry_ns == 0 || clock_mono_ns() < m->retry_ns))
		return m->unreadable;
	if (!make_room(s))
		return reason_word(REASON_CACHE_FULL);
	reason = read_table(s, m);
	pthread_mutex_lock(&s->modules.lock);
	m->loaded = true;
	m->unreadable = reason_word(reason);
	m->retry_ns = reason_passes(reason) ? clock_mono_ns() + SYMBOLS_RETRY_NS : 0;
	pthread_mutex_unlock(&s->modules.lock);
	return m->unreadable;
}

static void ask_build_id(struct symbols *s, struct module *m)
{
	uint8_t id[ELF_BUILD_ID_MAX], bytes = 0;
	struct elf_image image = { .fd = -1 };

	if (m->build_id_bytes > 0 || m->path[0] != '/' || open_module(m, &image) != REASON_NONE)
		return;
	if (elf_symbols_build_id(&image, id, &bytes) == 0)
		identify(s, m, id, bytes);
	cleanup_close(&image.fd);
}

/*
 * The mapped file with the module's build-id, or NULL. Files that came since the last call are
 * asked for theirs first, each once: four small reads, no symbols.
 */
static struct module *resolve(struct symbols *s, struct module *m)
{
	struct module *file;

	if (m->resolved)
		return m->resolved;
	while ((file = modules_at(&s->modules, s->identified)) != NULL) {
		ask_build_id(s, file);
		s->identified++;
	}
	file = idmap_get(&s->files_by_id,
			 modules_hash(s->modules.seed, m->build_id, BUILD_ID_BYTES));
	while (file && memcmp(file->build_id, m->build_id, BUILD_ID_BYTES) != 0)
		file = file->same_id;
	pthread_mutex_lock(&s->modules.lock);
	m->resolved = file;
	pthread_mutex_unlock(&s->modules.lock);
	return file;
}

static void touch(struct symbols *s, struct module *m)
{
	m->epoch = s->epoch;
	if (s->newest == m)
		return;
	unlink_table(s, m);
	link_newest(s, m);
}

/* Counts the lookup and says no. */
static int nameless(struct symbols *s, const char *why, struct symbol_name *ret_name)
{
	*ret_name = (struct symbol_name){ .why = why };
	__atomic_fetch_add(&s->stats.unnamed, 1, __ATOMIC_RELAXED);
	return -ENOENT;
}

int symbols_user(struct symbols *s, struct module *m, uint64_t offset, bool caller,
		 struct symbol_name *ret_name)
{
	const char *why, *fn;
	uint64_t start;

	__atomic_fetch_add(&s->stats.lookups, 1, __ATOMIC_RELAXED);
	if (!m->anonymous && m->path[0] == '\0') {
		m = resolve(s, m);
		if (!m)
			return nameless(s, reason_word(REASON_UNKNOWN_BUILD_ID), ret_name);
	}
	why = load(s, m);
	if (why)
		return nameless(s, why, ret_name);
	touch(s, m);
	fn = elf_symbols_find(m->symbols, caller && offset > 0 ? offset - 1 : offset, &start);
	if (!fn)
		return nameless(s, reason_word(REASON_NO_SYMBOL), ret_name);
	*ret_name = (struct symbol_name){ .fn = fn, .offset_in_fn = offset - start };
	return 0;
}

/* Reads ksyms; the old table stays until the next trim, because its strings may be held. */
static void read_kernel(struct symbols *s)
{
	struct kernel_symbols *fresh;

	s->kernel_read_ns = clock_mono_ns();
	if (!s->ksyms_path || kernel_symbols_read(s->ksyms_path, &fresh) < 0)
		return;
	s->old_kernel = s->kernel;
	s->kernel = fresh;
	account(s, kernel_symbols_bytes(fresh), kernel_symbols_count(fresh), true);
}

static bool kernel_is_old(const struct symbols *s)
{
	return s->kernel_read_ns == 0 ||
	       clock_mono_ns() - s->kernel_read_ns > SYMBOLS_KERNEL_AGE_NS;
}

static const char *find_kernel(const struct symbols *s, uint64_t address, uint64_t *ret_start,
			       const char **ret_module)
{
	return s->kernel ? kernel_symbols_find(s->kernel, address, ret_start, ret_module) : NULL;
}

int symbols_kernel(struct symbols *s, uint64_t address, struct symbol_name *ret_name,
		   const char **ret_module)
{
	const char *fn;
	uint64_t start;

	__atomic_fetch_add(&s->stats.lookups, 1, __ATOMIC_RELAXED);
	*ret_module = "";
	fn = find_kernel(s, address, &start, ret_module);
	if (!fn && !s->old_kernel && kernel_is_old(s)) {
		read_kernel(s);
		fn = find_kernel(s, address, &start, ret_module);
	}
	if (!fn)
		return nameless(s, reason_word(s->kernel ? REASON_NO_SYMBOL : REASON_NO_KSYMS),
				ret_name);
	*ret_name = (struct symbol_name){ .fn = fn, .offset_in_fn = address - start };
	return 0;
}

static void drop_kernel(struct symbols *s, struct kernel_symbols **k)
{
	if (!*k)
		return;
	account(s, kernel_symbols_bytes(*k), kernel_symbols_count(*k), false);
	kernel_symbols_free(*k);
	*k = NULL;
}

void symbols_trim(struct symbols *s)
{
	s->epoch++;
	drop_kernel(s, &s->old_kernel);
	while (s->table_bytes > s->max_bytes)
		evict(s, s->oldest);
}

void symbols_trim_kernel(struct symbols *s)
{
	drop_kernel(s, &s->old_kernel);
	if (s->kernel)
		s->kernel_read_ns = 0;
	drop_kernel(s, &s->kernel);
}

void symbols_stats(struct symbols *s, struct symbols_stats *ret_stats)
{
	pthread_mutex_lock(&s->modules.lock);
	*ret_stats = s->stats;
	ret_stats->modules = s->modules.count;
	pthread_mutex_unlock(&s->modules.lock);
}
