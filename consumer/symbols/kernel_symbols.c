/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/kernel_symbols.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/iterator.h"
#include "shared/abi/abi.h"
#include "shared/elf/name_table.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define NAME_PARTS	 2 /* name, module */
#define RECORD_BYTES_MAX (sizeof(struct ksym_record) + KERNEL_NAME_BYTES + KERNEL_MODULE_BYTES)

/* The symbols with the same upper 32 bits of their addresses. */
struct window {
	uint32_t high;
	struct name_table names;
};

struct kernel_symbols {
	size_t count;
	struct window windows[KERNEL_WINDOWS_MAX];
};

/* A window while records are read. */
struct pile {
	uint32_t high;
	struct name_table_entry *entries; /* owned */
	size_t count, space;
};

struct builder {
	struct pile piles[KERNEL_WINDOWS_MAX];
	size_t pile_count;
	size_t total;
	char *strings; /* owned */
	size_t string_bytes, string_space;
};

static void builder_done(struct builder *b)
{
	for (size_t i = 0; i < b->pile_count; i++)
		free(b->piles[i].entries);
	free(b->strings);
}

static void kernel_symbols_freep(struct kernel_symbols **k)
{
	kernel_symbols_free(*k);
}

static struct pile *find_pile(struct builder *b, uint32_t high)
{
	for (size_t i = 0; i < b->pile_count; i++)
		if (b->piles[i].high == high)
			return &b->piles[i];
	if (b->pile_count == KERNEL_WINDOWS_MAX)
		return NULL;
	b->piles[b->pile_count].high = high;
	return &b->piles[b->pile_count++];
}

static int push_entry(struct pile *p, struct name_table_entry entry)
{
	if (array_reserve(&p->entries, &p->space, p->count + 1, sizeof(*p->entries)) < 0)
		return -ENOMEM;
	p->entries[p->count++] = entry;
	return 0;
}

static int push_strings(struct builder *b, const char *strings, size_t bytes)
{
	if (b->string_bytes + bytes > KERNEL_STRINGS_MAX)
		return -EFBIG;
	if (!b->strings || b->string_bytes + bytes > b->string_space) {
		size_t space = MAX(b->string_space * 2, (size_t)1 << 20);
		char *more = realloc(b->strings, space);

		if (!more)
			return -ENOMEM;
		b->strings = more;
		b->string_space = space;
	}
	memcpy(b->strings + b->string_bytes, strings, bytes);
	b->string_bytes += bytes;
	return 0;
}

static int take_record(struct builder *b, const struct ksym_record *record, const char *names)
{
	struct name_table_entry entry = {
		.key = (uint32_t)record->address,
		.size = UINT32_MAX - (uint32_t)record->address,
		.text = (uint32_t)b->string_bytes,
		.rank = name_table_rank(names, false, true, false),
		.open = 1,
	};
	struct pile *pile;
	int r;

	if (record->address == 0 || names[0] == '\0')
		return 0;
	if (++b->total > KERNEL_SYMBOLS_MAX)
		return -EFBIG;
	pile = find_pile(b, (uint32_t)(record->address >> 32));
	if (!pile)
		return -EFBIG;
	r = push_strings(b, names, (size_t)record->name_bytes + record->module_bytes);
	if (r < 0)
		return r;
	return push_entry(pile, entry);
}

/* Whether the lengths are within their limits and the strings end at the record's lengths. */
static bool record_is_sound(const struct ksym_record *r)
{
	size_t names = (size_t)r->name_bytes + r->module_bytes;

	return r->name_bytes >= 1 && r->name_bytes <= KERNEL_NAME_BYTES && r->module_bytes >= 1 &&
	       r->module_bytes <= KERNEL_MODULE_BYTES && r->record_bytes >= sizeof(*r) + names &&
	       r->record_bytes <= RECORD_BYTES_MAX && r->record_bytes % 8 == 0;
}

static bool ends_once(const char *text, size_t bytes)
{
	return strnlen(text, bytes) == bytes - 1;
}

static ssize_t take_records(void *context, const uint8_t *data, size_t bytes)
{
	struct builder *b = context;
	size_t at = 0;

	while (bytes - at >= sizeof(struct ksym_record)) {
		struct ksym_record record;
		const char *names = (const char *)data + at + sizeof(record);
		int r;

		memcpy(&record, data + at, sizeof(record));
		if (!record_is_sound(&record))
			return -EBADMSG;
		if (record.record_bytes > bytes - at)
			break;
		if (!ends_once(names, record.name_bytes) ||
		    !ends_once(names + record.name_bytes, record.module_bytes))
			return -EBADMSG;
		r = take_record(b, &record, names);
		if (r < 0)
			return r;
		at += record.record_bytes;
	}
	return (ssize_t)at;
}

static const char *module_of(const struct name_table *n, size_t i)
{
	const char *name = name_table_text(n, i);

	return name + strlen(name) + 1;
}

/*
 * Whether the symbols are pages of ftrace and kprobes (kernel/kallsyms.c): their addresses are
 * scattered.
 */
static bool is_scattered(const char *module)
{
	static const char builtin[] = "__builtin__";

	return strncmp(module, builtin, strlen(builtin)) == 0;
}

/*
 * Bounds the symbols that do not extend to the next one: the last symbol of a module, with an
 * unknown end, and each scattered one. The length of a BPF program is in bpf_code.h: the symbol has
 * its start.
 */
static void bound_symbols(struct name_table *n)
{
	for (size_t i = 0; i < n->count; i++) {
		const char *module = module_of(n, i);

		if (strcmp(module, KERNEL_BPF_MODULE) == 0)
			n->sizes[i] = 1;
		else if (i + 1 == n->count || is_scattered(module) ||
			 strcmp(module, module_of(n, i + 1)) != 0)
			n->sizes[i] = MIN(n->sizes[i], (uint32_t)KERNEL_LAST_BYTES);
	}
}

static int build_symbols(struct builder *b, struct kernel_symbols **ret_symbols)
{
	const struct name_table_texts texts = {
		.strings = b->strings,
		.bytes = b->string_bytes,
		.parts = NAME_PARTS,
		.kept_max = KERNEL_STRINGS_MAX,
	};
	_cleanup_(kernel_symbols_freep) struct kernel_symbols *k = NULL;

	if (b->total == 0)
		return -ENODATA;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	for (size_t i = 0; i < b->pile_count; i++) {
		struct window *w = &k->windows[i];
		struct pile *p = &b->piles[i];
		int r;

		r = name_table_build(p->entries, p->count, &texts, &w->names);
		if (r < 0)
			return r;
		w->high = p->high;
		k->count++;
		bound_symbols(&w->names);
	}
	*ret_symbols = TAKE_PTR(k);
	return 0;
}

int kernel_symbols_read(const char *path, struct kernel_symbols **ret_symbols)
{
	_cleanup_(builder_done) struct builder b = { 0 };
	int r;

	r = iterator_read(path, take_records, &b);
	if (r < 0)
		return r;
	return build_symbols(&b, ret_symbols);
}

int kernel_symbols_parse(const uint8_t *data, size_t bytes, struct kernel_symbols **ret_symbols)
{
	_cleanup_(builder_done) struct builder b = { 0 };
	ssize_t used;

	used = take_records(&b, data, bytes);
	if (used < 0)
		return (int)used;
	if ((size_t)used != bytes)
		return -EBADMSG;
	return build_symbols(&b, ret_symbols);
}

void kernel_symbols_free(struct kernel_symbols *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->count; i++)
		name_table_done(&k->windows[i].names);
	free(k);
}

const char *kernel_symbols_find(const struct kernel_symbols *k, uint64_t address,
				uint64_t *ret_start, const char **ret_module)
{
	for (size_t i = 0; i < k->count; i++) {
		const struct window *w = &k->windows[i];
		ptrdiff_t found;

		if (w->high != address >> 32)
			continue;
		found = name_table_find(&w->names, (uint32_t)address);
		if (found < 0)
			return NULL;
		*ret_start = (uint64_t)w->high << 32 | w->names.keys[found];
		*ret_module = module_of(&w->names, (size_t)found);
		return name_table_text(&w->names, (size_t)found);
	}
	return NULL;
}

size_t kernel_symbols_count(const struct kernel_symbols *k)
{
	size_t count = 0;

	for (size_t i = 0; i < k->count; i++)
		count += k->windows[i].names.count;
	return count;
}

size_t kernel_symbols_bytes(const struct kernel_symbols *k)
{
	size_t bytes = sizeof(*k);

	for (size_t i = 0; i < k->count; i++)
		bytes += name_table_bytes(&k->windows[i].names);
	return bytes;
}
