/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_gather.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define CHUNK_BYTES (96u << 10) /* bytes of symbols per read: a multiple of both symbol sizes */

/* A symbol table during the read. */
struct table {
	const struct elf_reader *from;
	uint64_t bias;	    /* the file's addresses minus this table's: prelink(8) moves files */
	size_t base;	    /* offset of its names in the gather's strings */
	size_t names;	    /* bytes of its names that were read */
	uint64_t all_names; /* bytes of its names in the file */
	size_t most;	    /* limit of the gather's entries during the read of this table */
	bool cut;	    /* functions were omitted because of a limit */
};

void elf_gather_done(struct elf_gather *g)
{
	elf_reader_done(&g->file);
	free(g->strings);
	free(g->entries);
	*g = (struct elf_gather){ 0 };
}

struct elf_gather_mark elf_gather_mark(const struct elf_gather *g)
{
	return (struct elf_gather_mark){
		.string_bytes = g->string_bytes,
		.entry_count = g->entry_count,
		.symbol_count = g->symbol_count,
		.cut = g->cut,
		.local = g->local,
	};
}

void elf_gather_rewind(struct elf_gather *g, struct elf_gather_mark mark)
{
	g->string_bytes = mark.string_bytes;
	g->entry_count = mark.entry_count;
	g->symbol_count = mark.symbol_count;
	g->cut = mark.cut;
	g->local = mark.local;
}

/*
 * Reserves space for `bytes` more bytes and a NUL. Grows by at least a quarter of the used bytes,
 * so that many small names need few reallocations.
 */
static int reserve_strings(struct elf_gather *g, uint64_t bytes)
{
	size_t space;
	char *more;

	if (bytes >= g->limits.string_bytes || g->string_bytes + bytes + 1 > g->limits.string_bytes)
		return -EFBIG;
	if (g->string_bytes + bytes + 1 <= g->string_space)
		return 0;
	space = g->string_bytes + MAX((size_t)bytes + 1, g->string_bytes / 4);
	more = realloc(g->strings, space);
	if (!more)
		return -ENOMEM;
	g->strings = more;
	g->string_space = space;
	return 0;
}

int elf_gather_text(struct elf_gather *g, const void *text, size_t bytes, size_t *ret_at)
{
	int r;

	r = reserve_strings(g, bytes);
	if (r < 0)
		return r;
	*ret_at = g->string_bytes;
	memcpy(g->strings + g->string_bytes, text, bytes);
	g->string_bytes += bytes;
	g->strings[g->string_bytes++] = '\0';
	return 0;
}

/* Appends the first `bytes` bytes of the section and a NUL. */
static int read_section(struct elf_gather *g, const struct elf_reader *from, const Elf64_Shdr *s,
			uint64_t bytes, size_t *ret_at)
{
	int r;

	r = reserve_strings(g, bytes);
	if (r < 0)
		return r;
	r = elf_reader_at(from->image, s->sh_offset, g->strings + g->string_bytes, (size_t)bytes);
	if (r < 0)
		return r;
	*ret_at = g->string_bytes;
	g->string_bytes += (size_t)bytes;
	g->strings[g->string_bytes++] = '\0';
	return 0;
}

static bool lies_in_file(const struct elf_reader *from, const Elf64_Shdr *s)
{
	return s->sh_type != SHT_NOBITS && s->sh_offset <= from->image->bytes &&
	       s->sh_size <= from->image->bytes - s->sh_offset;
}

int elf_gather_section(struct elf_gather *g, const struct elf_reader *from, const Elf64_Shdr *s,
		       size_t *ret_at)
{
	return lies_in_file(from, s) ? read_section(g, from, s, s->sh_size, ret_at) : -EBADMSG;
}

/*
 * Returns the part of `wanted` that a table gets: all if it fits, else seven eighths of `left`, so
 * that other tables get some.
 */
static uint64_t take_share(uint64_t wanted, uint64_t left)
{
	return wanted <= left ? wanted : left - left / 8;
}

/* Reads the names of a table. If not all fit, cuts them after the last whole name. */
static int read_names(struct elf_gather *g, struct table *t, const Elf64_Shdr *s)
{
	uint64_t left = g->limits.string_bytes - MIN(g->string_bytes + 2, g->limits.string_bytes);
	uint64_t bytes = take_share(s->sh_size, left);
	int r;

	if (!lies_in_file(t->from, s))
		return -EBADMSG;
	r = read_section(g, t->from, s, bytes, &t->base);
	if (r < 0)
		return r;
	while (bytes < s->sh_size && bytes > 0 && g->strings[t->base + bytes - 1] != '\0')
		bytes--;
	t->names = (size_t)bytes;
	t->all_names = s->sh_size;
	g->string_bytes = t->base + t->names + 1;
	g->strings[g->string_bytes - 1] = '\0';
	return 0;
}

static int grow_entries(struct elf_gather *g, size_t space)
{
	struct name_table_entry *more = realloc(g->entries, space * sizeof(*more));

	if (!more)
		return -ENOMEM;
	g->entries = more;
	g->entry_space = space;
	return 0;
}

static int push_entry(struct elf_gather *g, struct name_table_entry entry)
{
	int r = 0;

	if (g->entry_count == g->limits.symbols)
		return -EFBIG;
	if (g->entry_count == g->entry_space)
		r = grow_entries(g, MAX(g->entry_space * 2, (size_t)64));
	if (r < 0)
		return r;
	g->entries[g->entry_count++] = entry;
	return 0;
}

/*
 * Returns the executable segment of an address, or NULL. Tries the last result first: most
 * functions are in the same segment as the previous one.
 */
static const Elf64_Phdr *find_segment(struct elf_gather *g, uint64_t address)
{
	if (!g->code || address - g->code->p_vaddr >= g->code->p_filesz)
		g->code = elf_reader_code(&g->file, address);
	return g->code;
}

int elf_gather_push(struct elf_gather *g, const struct elf_function *f)
{
	const Elf64_Phdr *segment = find_segment(g, f->address);
	uint64_t room;

	if (!segment)
		return 0;
	/* Keys are 32-bit file offsets: functions above that are omitted. */
	if (segment->p_offset > UINT32_MAX || segment->p_filesz > UINT32_MAX - segment->p_offset) {
		g->cut = true;
		return 0;
	}
	room = segment->p_filesz - (f->address - segment->p_vaddr);
	if (f->bytes == 0 && f->most > f->address)
		room = MIN(room, f->most - f->address);
	return push_entry(
		g, (struct name_table_entry){
			   .key = (uint32_t)(segment->p_offset + f->address - segment->p_vaddr),
			   .size = (uint32_t)(f->bytes ? MIN(f->bytes, room) : room),
			   .text = (uint32_t)f->text,
			   .rank = f->rank,
			   .open = f->bytes == 0,
		   });
}

/*
 * Returns whether a symbol can name code: a function, or an untyped symbol in a code section, as in
 * hand-written assembly.
 */
static bool is_code(const struct elf_reader *e, const Elf64_Sym *symbol)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);
	size_t section = symbol->st_shndx;

	if (section == SHN_UNDEF || section == SHN_ABS || section == SHN_COMMON)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && section < e->section_count &&
	       (e->sections[section].sh_flags & SHF_EXECINSTR);
}

/*
 * Returns whether `text` can be the name of a function. Excludes untyped symbols that begin with
 * "$" or ".": "$x" and similar ones mark code and data for Arm disassemblers, and ".L" is an
 * assembler's label.
 */
static bool is_name(const Elf64_Sym *symbol, const char *text)
{
	return *text &&
	       (ELF64_ST_TYPE(symbol->st_info) != STT_NOTYPE || (*text != '$' && *text != '.'));
}

/*
 * Returns the end address of the symbol's section; 0: it is in none. A function without a size ends
 * there at the latest: _init in .init, which has no size, must not cover the stubs of .plt.
 */
static uint64_t find_section_end(const struct elf_reader *e, const Elf64_Sym *symbol)
{
	const Elf64_Shdr *s =
		symbol->st_shndx < e->section_count ? &e->sections[symbol->st_shndx] : NULL;

	if (!s || symbol->st_value - s->sh_addr > s->sh_size)
		return 0;
	return s->sh_addr + s->sh_size;
}

/* Adds one symbol if it names code and fits. */
static int take_symbol(struct elf_gather *g, struct table *t, const Elf64_Sym *symbol)
{
	uint64_t address = symbol->st_value, end = find_section_end(t->from, symbol);
	const char *text;

	if (!is_code(t->from, symbol) || symbol->st_name >= t->all_names)
		return 0;
	if (symbol->st_name >= t->names || g->entry_count >= t->most) {
		t->cut = true;
		return 0;
	}
	text = g->strings + t->base + symbol->st_name;
	/* A label at the end of its section has no code. */
	if (!is_name(symbol, text) || (symbol->st_size == 0 && end && end == symbol->st_value))
		return 0;
	if (t->from->header.e_machine == EM_ARM)
		address &= ~1ULL; /* the low bit marks Thumb code */
	g->local = g->local || ELF64_ST_BIND(symbol->st_info) == STB_LOCAL;
	return elf_gather_push(g, &(struct elf_function){
					  .address = address + t->bias,
					  .bytes = symbol->st_size,
					  .most = end ? end + t->bias : 0,
					  .text = t->base + symbol->st_name,
					  .rank = name_table_rank(
						  text, ELF64_ST_BIND(symbol->st_info) != STB_LOCAL,
						  ELF64_ST_TYPE(symbol->st_info) != STT_NOTYPE,
						  symbol->st_size != 0),
				  });
}

static int take_symbols(struct elf_gather *g, struct table *t, const uint8_t *chunk, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		Elf64_Sym symbol;
		int r;

		if (t->from->wide)
			symbol = ((const Elf64_Sym *)(const void *)chunk)[i];
		else
			elf_reader_widen_symbol((const Elf32_Sym *)(const void *)chunk + i,
						&symbol);
		r = take_symbol(g, t, &symbol);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Reads the first `count` symbols of the table in chunks. */
static int read_chunks(struct elf_gather *g, struct table *t, const Elf64_Shdr *s, uint64_t count)
{
	size_t whole = (size_t)MIN(count * s->sh_entsize, (uint64_t)CHUNK_BYTES);
	_cleanup_free_ uint8_t *chunk = malloc(MAX(whole, (size_t)1));
	uint64_t end = s->sh_offset + count * s->sh_entsize;
	int r;

	if (!chunk)
		return -ENOMEM;
	for (uint64_t at = s->sh_offset; at < end; at += CHUNK_BYTES) {
		size_t bytes = (size_t)MIN(end - at, (uint64_t)CHUNK_BYTES);

		r = elf_reader_at(t->from->image, at, chunk, bytes);
		if (r < 0)
			return r;
		r = take_symbols(g, t, chunk, bytes / s->sh_entsize);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Drops the functions without a size from entry `first` on: only the omitted functions might show
 * where they end.
 */
static void drop_open_entries(struct elf_gather *g, size_t first)
{
	size_t kept = first;

	for (size_t i = first; i < g->entry_count; i++)
		if (!g->entries[i].open)
			g->entries[kept++] = g->entries[i];
	g->entry_count = kept;
}

int elf_gather_symbols(struct elf_gather *g, const struct elf_reader *from, const Elf64_Shdr *s)
{
	size_t size = from->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym), first = g->entry_count;
	uint64_t all = s->sh_size / size, left = g->limits.symbols - first;
	uint64_t count = MIN(all, (uint64_t)g->limits.symbols * ELF_SYMBOLS_PER_FUNCTION);
	struct table t = { .from = from,
			   .bias = elf_reader_base(&g->file) - elf_reader_base(from),
			   .most = first + (size_t)take_share(all, left),
			   .cut = count < all };
	int r;

	if (s->sh_entsize != size || !lies_in_file(from, s) || s->sh_link >= from->section_count ||
	    from->sections[s->sh_link].sh_type != SHT_STRTAB)
		return -EBADMSG;
	g->symbol_count += count;
	r = read_names(g, &t, &from->sections[s->sh_link]);
	if (r < 0)
		return r;
	/* Reserve space for all at once; the kernel gives no memory to pages of unused entries. */
	if (t.most > g->entry_space)
		r = grow_entries(g, t.most);
	if (r == 0)
		r = read_chunks(g, &t, s, count);
	if (t.cut)
		drop_open_entries(g, first);
	g->cut = g->cut || t.cut;
	return r;
}
