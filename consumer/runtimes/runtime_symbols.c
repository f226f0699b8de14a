/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/runtimes/runtime_symbols.h"

#include <string.h>

#include "shared/tools/macro.h"

#define CHAIN_MAX      4096 /* symbols of one bucket: with a good hash there are two or three */
#define NAME_MAX_BYTES 16

static const char *const names[RUNTIME_SYMBOLS] = { RUNTIME_SYMBOL_NAMES };

/* The tables of one file. */
struct tables {
	const struct elf_reader *e;
	const Elf64_Shdr *hash, *symbols, *strings;
	uint32_t buckets, first, bloom_words; /* the header of .gnu.hash */
};

/* The hash function of .gnu.hash (Bernstein's). */
static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

static bool read_from(const struct tables *t, const Elf64_Shdr *section, uint64_t at, void *to,
		      size_t bytes)
{
	return at <= section->sh_size && section->sh_size - at >= bytes &&
	       section->sh_offset <= UINT64_MAX - at &&
	       elf_reader_read(t->e, section->sh_offset + at, to, bytes) == 0;
}

static bool has_name(const struct tables *t, uint32_t index, const char *name)
{
	char found[NAME_MAX_BYTES];
	size_t bytes = strlen(name) + 1;
	Elf64_Sym symbol;

	return bytes <= sizeof(found) &&
	       read_from(t, t->symbols, (uint64_t)index * sizeof(symbol), &symbol,
			 sizeof(symbol)) &&
	       symbol.st_shndx != SHN_UNDEF &&
	       read_from(t, t->strings, symbol.st_name, found, bytes) &&
	       !memcmp(found, name, bytes);
}

/* Returns the index of the symbol; 0: the file has none of this name. */
static uint32_t find_symbol(const struct tables *t, const char *name)
{
	uint64_t buckets = 16 + 8ull * t->bloom_words, chain = buckets + 4ull * t->buckets;
	uint32_t hash = hash_of(name), index, other;

	if (!read_from(t, t->hash, buckets + 4ull * (hash % t->buckets), &index, sizeof(index)) ||
	    index < t->first)
		return 0;
	for (int i = 0; i < CHAIN_MAX; i++, index++) {
		if (!read_from(t, t->hash, chain + 4ull * (index - t->first), &other,
			       sizeof(other)))
			return 0;
		if ((other | 1) == (hash | 1) && has_name(t, index, name))
			return index;
		if (other & 1)
			return 0;
	}
	return 0;
}

static bool open_tables(struct elf_reader *e, struct tables *ret_tables)
{
	uint32_t header[4];

	*ret_tables = (struct tables){ .e = e };
	if (elf_reader_sections(e) < 0 || elf_reader_find(e, ".gnu.hash", &ret_tables->hash) < 0 ||
	    elf_reader_find(e, ".dynsym", &ret_tables->symbols) < 0 ||
	    elf_reader_find(e, ".dynstr", &ret_tables->strings) < 0 ||
	    !read_from(ret_tables, ret_tables->hash, 0, header, sizeof(header)))
		return false;
	ret_tables->buckets = header[0];
	ret_tables->first = header[1];
	ret_tables->bloom_words = header[2];
	return header[0] != 0;
}

bool runtime_symbols_read(struct elf_reader *e, struct runtime_symbols *ret_symbols)
{
	struct runtime_symbols found = { 0 };
	struct tables tables;

	*ret_symbols = found;
	if (!e->wide || !open_tables(e, &tables))
		return false;
	for (size_t i = 0; i < RUNTIME_SYMBOLS; i++) {
		found.indices[i] = find_symbol(&tables, names[i]);
		if (!found.indices[i] && i != RUNTIME_SYMBOL_VERSION)
			return false;
	}
	for (size_t i = 0; i < e->segment_count; i++)
		if (e->segments[i].p_type == PT_LOAD) {
			found.first = e->segments[i].p_vaddr - e->segments[i].p_offset;
			*ret_symbols = found;
			return true;
		}
	return false;
}
