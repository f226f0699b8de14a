/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/symbols.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/jit/perf_map.h"
#include "consumer/jit/perf_map_names.h"
#include "consumer/symbols/build_ids.h"
#include "consumer/symbols/kernel_symbol_reader.h"
#include "consumer/symbols/module_file.h"
#include "consumer/symbols/modules.h"
#include "consumer/symbols/pretty.h"
#include "consumer/symbols/symbols_internal.h"
#include "shared/elf/debug_file.h"
#include "shared/elf/elf_call.h"
#include "shared/elf/elf_symbols.h"
#include "shared/elf/reason.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

int symbols_new(size_t max_bytes, const char *ksyms_path, struct symbols **ret_symbols)
{
	_cleanup_free_ struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (kernel_symbol_reader_init(&s->ksyms, ksyms_path) < 0)
		return -ENOMEM;
	modules_init(&s->modules);
	s->file.lock = &s->modules.lock;
	build_ids_init(&s->ids, s->modules.seed);
	perf_map_files_init(&s->perf_map_files, PERF_MAP_FOLDER);
	code_names_init(&s->code_names);
	s->max_bytes = max_bytes;
	*ret_symbols = TAKE_PTR(s);
	return 0;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	modules_done(&s->modules);
	build_ids_done(&s->ids);
	perf_map_names_done(&s->jit);
	perf_map_files_done(&s->perf_map_files);
	code_names_done(&s->code_names);
	kernel_symbol_reader_done(&s->ksyms);
	free(s);
}

void symbols_set_borrow(struct symbols *s, symbols_borrow borrow, void *context)
{
	s->file.borrow = borrow;
	s->file.context = context;
}

int symbols_set_bpf_code(struct symbols *s, const char *path)
{
	return kernel_symbol_reader_set_bpf(&s->ksyms, path);
}

struct perf_map_files *symbols_perf_map_files(struct symbols *s)
{
	return &s->perf_map_files;
}

struct code_names *symbols_code_names(struct symbols *s)
{
	return &s->code_names;
}

/* ---- from here on: symbolizer thread only */

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

/* Adds `bytes` and `symbols` to the statistics, or subtracts them if `came` is false. */
static void account_bytes(struct symbols *s, size_t bytes, size_t symbols, bool came)
{
	pthread_mutex_lock(&s->modules.lock);
	s->stats.bytes += came ? bytes : -bytes;
	s->stats.symbols += came ? symbols : -symbols;
	pthread_mutex_unlock(&s->modules.lock);
}

void symbols_evict_table(struct symbols *s, struct module *m)
{
	struct elf_symbols *table = m->symbols;
	size_t bytes = elf_symbols_bytes(table) + pretty_bytes(m->pretty);

	unlink_table(s, m);
	s->table_bytes -= bytes;
	account_bytes(s, bytes, table->names.count, false);
	pretty_free(m->pretty);
	m->pretty = NULL;
	m->symbols = NULL;
	m->loaded = false;
	elf_symbols_free(table);
}

/*
 * Evicts tables used before the last trim, without a holder of their strings, until there is space;
 * false if there is none.
 */
static bool make_room(struct symbols *s)
{
	while (s->table_bytes >= s->max_bytes && s->oldest && s->oldest->epoch != s->epoch)
		symbols_evict_table(s, s->oldest);
	return s->table_bytes < s->max_bytes || s->table_bytes == 0;
}

/* Records where a debug file of the module would be, if it may have more names. */
static void keep_links(struct module *m, const struct elf_symbols *table)
{
	free(m->links);
	m->links = table->whole ? NULL : malloc(sizeof(*m->links));
	if (m->links)
		*m->links = table->links;
	m->nameless = false;
}

/*
 * Whether a debug file has appeared for a module that had to be left without names. Checks at most
 * once between two trims, and before any name of its table is in use.
 */
static bool has_new_debug_file(const struct symbols *s, struct module *m)
{
	struct debug_file debug = { .root = DEBUG_FILE_ROOT, .path = m->path };
	struct elf_image image = { .fd = -1 };
	bool looked = m->looked == s->epoch || (m->symbols && m->epoch == s->epoch);

	m->looked = s->epoch;
	if (looked || !m->nameless || !m->links || debug_file_open(&debug, m->links, &image) < 0)
		return false;
	cleanup_close(&image.fd);
	return true;
}

/* Reads the table from an opened file, if that is the module's file. */
static enum reason read_image(struct symbols *s, struct module *m, const struct elf_image *image)
{
	struct debug_file debug = { .root = DEBUG_FILE_ROOT, .path = m->path };
	const struct elf_finder finder = { .open = debug_file_open, .context = &debug };
	const struct elf_symbols_options options = { .finder = &finder };
	struct elf_symbols *table;
	enum reason reason;
	int r;

	__atomic_fetch_add(&s->stats.files_read, 1, __ATOMIC_RELAXED);
	r = elf_symbols_read(image, image->memory ? NULL : &options, &table);
	if (r < 0)
		return reason_of_elf(r);
	if (!symbols_identify(s, m, table->id.bytes, table->id.n)) {
		elf_symbols_free(table);
		return REASON_OTHER_FILE;
	}
	keep_links(m, table);
	if (table->names.count == 0) {
		reason = table->cut ? REASON_TOO_LARGE : REASON_STRIPPED;
		elf_symbols_free(table);
		return reason;
	}
	s->table_bytes += elf_symbols_bytes(table);
	account_bytes(s, elf_symbols_bytes(table), table->names.count, true);
	m->symbols = table;
	link_newest(s, m);
	return REASON_NONE;
}

static enum reason read_borrowed(struct symbols *s, struct module *m, enum reason host)
{
	struct elf_image image = { .fd = -1 };
	enum reason reason = module_file_borrow(&s->file, m, host, &image);

	if (image.fd < 0)
		return reason;
	reason = read_image(s, m, &image);
	cleanup_close(&image.fd);
	__atomic_fetch_add(&s->stats.files_borrowed, 1, __ATOMIC_RELAXED);
	return reason;
}

/* Reads the table of a module without one, from the host's file or else through the broker. */
static enum reason read_table(struct symbols *s, struct module *m)
{
	struct elf_image image = { .fd = -1 };
	enum reason reason = module_file_open(m, &image);

	m->borrowed = false;
	if (reason == REASON_NONE) {
		reason = read_image(s, m, &image);
		cleanup_close(&image.fd);
	}
	if (!module_file_may_borrow(&s->file, m, reason))
		return reason;
	m->borrowed = true;
	return read_borrowed(s, m, reason);
}

/*
 * Loads the module's table unless it is loaded. Returns NULL, or the reason: m->unreadable or
 * another word.
 */
static const char *load_table(struct symbols *s, struct module *m)
{
	enum reason reason;

	if (has_new_debug_file(s, m)) {
		if (m->symbols)
			symbols_evict_table(s, m);
		m->loaded = false;
	}
	if (m->symbols)
		return NULL;
	if (m->loaded && (m->retry_ns == 0 || clock_mono_ns() < m->retry_ns))
		return m->unreadable;
	if (!make_room(s))
		return reason_word(REASON_CACHE_FULL);
	reason = read_table(s, m);
	m->loaded = true;
	m->unreadable = reason_word(reason);
	m->retry_ns = 0;
	if (reason_passes(reason) || module_file_may_borrow(&s->file, m, reason))
		m->retry_ns = clock_mono_ns() + SYMBOLS_RETRY_NS;
	return m->unreadable;
}

static void touch_module(struct symbols *s, struct module *m)
{
	m->epoch = s->epoch;
	if (s->newest == m)
		return;
	unlink_table(s, m);
	link_newest(s, m);
}

/* Counts a lookup without a name and returns -ENOENT with `why`. */
static int count_nameless(struct symbols *s, const char *why, struct symbol_name *ret_name)
{
	*ret_name = (struct symbol_name){ .reason = why };
	__atomic_fetch_add(&s->stats.unnamed, 1, __ATOMIC_RELAXED);
	return -ENOENT;
}

/* Returns the readable form of a name in the module's table, made once. */
static const char *prettify_name(struct symbols *s, struct module *m, const char *raw)
{
	size_t before = pretty_bytes(m->pretty), more;
	const char *fn = pretty_name(&m->pretty, raw);

	more = pretty_bytes(m->pretty) - before;
	if (more > 0) {
		s->table_bytes += more;
		account_bytes(s, more, 0, true);
	}
	return fn;
}

/*
 * Returns the module with the table that names this module's functions: itself, or another file of
 * the same build, because containers have copies of their own. NULL: *ret_why has the reason.
 */
static struct module *find_table(struct symbols *s, struct module *m, const char **ret_why)
{
	bool known = __atomic_load_n(&m->build_id_known, __ATOMIC_RELAXED);
	struct module *other = known && !m->symbols ? symbols_find_copy(s, m) : NULL;

	*ret_why = NULL;
	if (other && !load_table(s, other))
		return other;
	other = NULL;
	*ret_why = load_table(s, m);
	if (*ret_why && known)
		other = symbols_find_sole(s, m);
	if (!other || load_table(s, other))
		return m;
	*ret_why = NULL;
	return other;
}

/* The code of a module, for elf_symbols_find_caller. */
struct code {
	struct symbols *s;
	struct module *m;
};

/* Whether a call may end at the offset. Reads the code of the file, which is rarely needed. */
static bool has_call(void *context, uint64_t offset)
{
	struct code *c = context;
	struct module_entry *entry = &c->m->entries[offset / 16 % MODULE_ENTRIES];
	struct elf_image image = { .fd = -1 };

	if (entry->known && entry->offset == offset)
		return entry->has_call;
	*entry = (struct module_entry){ .offset = offset, .known = true, .has_call = true };
	if (module_file_open_any(&c->s->file, c->m, &image) == REASON_NONE)
		entry->has_call = elf_call_ends_at(&image, offset);
	cleanup_close(&image.fd);
	return entry->has_call;
}

int symbols_user(struct symbols *s, struct module *m, uint64_t offset, bool caller,
		 struct symbol_name *ret_name)
{
	const char *why, *raw, *fn;
	uint64_t start;

	__atomic_fetch_add(&s->stats.lookups, 1, __ATOMIC_RELAXED);
	if (!m->anonymous && m->path[0] == '\0') {
		m = symbols_resolve(s, m);
		if (!m)
			return count_nameless(s, reason_word(REASON_UNKNOWN_BUILD_ID), ret_name);
	}
	m = find_table(s, m, &why);
	m->nameless = m->nameless || why;
	if (why)
		return count_nameless(s, why, ret_name);
	touch_module(s, m);
	raw = caller ? elf_symbols_find_caller(
			       m->symbols, offset,
			       &(struct elf_code){ has_call, &(struct code){ s, m } }, &start)
		     : elf_symbols_find(m->symbols, offset, &start);
	if (!raw) {
		m->nameless = true;
		why = reason_word(m->symbols->cut ? REASON_TOO_LARGE : REASON_NO_SYMBOL);
		count_nameless(s, why, ret_name);
		if (!m->symbols->cut)
			ret_name->after = elf_symbols_after(m->symbols, offset);
		return -ENOENT;
	}
	fn = prettify_name(s, m, raw);
	*ret_name = (struct symbol_name){
		.fn = fn,
		.raw = fn == raw ? NULL : raw,
		.offset_in_fn = offset - start,
	};
	return 0;
}

int symbols_jit(struct symbols *s, const struct process_key *process, uint64_t address,
		struct symbol_name *ret_name)
{
	size_t before = s->jit.bytes;
	uint64_t start;
	const char *fn;
	enum reason reason;

	__atomic_fetch_add(&s->stats.lookups, 1, __ATOMIC_RELAXED);
	reason = perf_map_names_find(&s->jit, &s->perf_map_files, process, address, s->max_bytes,
				     &fn, &start);
	if (s->jit.bytes > before)
		account_bytes(s, s->jit.bytes - before, 0, true);
	if (reason != REASON_NONE)
		return count_nameless(s, reason_word(reason), ret_name);
	*ret_name = (struct symbol_name){ .fn = fn, .offset_in_fn = address - start };
	return 0;
}

/* Updates the statistics with the current size of the kernel's tables. */
static void account_ksyms(struct symbols *s)
{
	size_t bytes = kernel_symbol_reader_bytes(&s->ksyms),
	       count = kernel_symbol_reader_count(&s->ksyms);

	account_bytes(s, s->kernel_symbol_reader_bytes, s->kernel_symbol_reader_count, false);
	account_bytes(s, bytes, count, true);
	s->kernel_symbol_reader_bytes = bytes;
	s->kernel_symbol_reader_count = count;
}

int symbols_kernel(struct symbols *s, uint64_t address, struct symbol_name *ret_name,
		   const char **ret_module)
{
	uint64_t start, before = s->ksyms.read_ns;
	const char *fn;

	__atomic_fetch_add(&s->stats.lookups, 1, __ATOMIC_RELAXED);
	*ret_module = "";
	fn = kernel_symbol_reader_find(&s->ksyms, address, &start, ret_module);
	if (s->ksyms.read_ns != before)
		account_ksyms(s);
	if (!fn)
		return count_nameless(
			s, reason_word(s->ksyms.now ? REASON_NO_SYMBOL : REASON_NO_KSYMS),
			ret_name);
	*ret_name = (struct symbol_name){ .fn = fn, .offset_in_fn = address - start };
	return 0;
}

void symbols_set_since(struct symbols *s, uint64_t since_ns)
{
	s->ksyms.since_ns = since_ns;
	perf_map_names_begin(&s->jit, since_ns);
}

void symbols_trim(struct symbols *s)
{
	s->epoch++;
	account_bytes(s, s->jit.bytes, 0, false);
	perf_map_names_done(&s->jit);
	code_names_trim(&s->code_names);
	kernel_symbol_reader_trim(&s->ksyms);
	account_ksyms(s);
	while (s->table_bytes > s->max_bytes)
		symbols_evict_table(s, s->oldest);
}

void symbols_trim_kernel(struct symbols *s)
{
	kernel_symbol_reader_forget(&s->ksyms);
	account_ksyms(s);
}

void symbols_stats(struct symbols *s, struct symbols_stats *ret_stats)
{
	*ret_stats = (struct symbols_stats){
		.files_read = __atomic_load_n(&s->stats.files_read, __ATOMIC_RELAXED),
		.files_borrowed = __atomic_load_n(&s->stats.files_borrowed, __ATOMIC_RELAXED),
		.unnamed = __atomic_load_n(&s->stats.unnamed, __ATOMIC_RELAXED),
		.lookups = __atomic_load_n(&s->stats.lookups, __ATOMIC_RELAXED),
	};
	pthread_mutex_lock(&s->modules.lock);
	ret_stats->modules = s->modules.count - s->modules.forgotten;
	ret_stats->modules_refused = s->modules.refused;
	ret_stats->symbols = s->stats.symbols;
	ret_stats->bytes = s->stats.bytes;
	pthread_mutex_unlock(&s->modules.lock);
}
