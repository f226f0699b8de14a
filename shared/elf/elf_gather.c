/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_gather.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define CHUNK_BYTES (96u << 10) /* symbols read at a time: a multiple of both symbol sizes */

/* One symbol table while it is read. */
struct table {
	const struct elf_reader *from;
	uint64_t bias; /* difference of its addresses to the file's: prelink(8) moves files */
	size_t base;   /* offset of its names in the strings */
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
	};
}

void elf_gather_rewind(struct elf_gather *g, struct elf_gather_mark mark)
{
	g->string_bytes = mark.string_bytes;
	g->entry_count = mark.entry_count;
	g->symbol_count = mark.symbol_count;
}

/* Makes room for `bytes` more and a NUL: for a large table exactly that, for small names more. */
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

int elf_gather_section(struct elf_gather *g, const struct elf_reader *from, const Elf64_Shdr *s,
		       size_t *ret_at)
{
	int r;

	if (s->sh_type == SHT_NOBITS || s->sh_offset > from->image->bytes ||
	    s->sh_size > from->image->bytes - s->sh_offset)
		return -EBADMSG;
	r = reserve_strings(g, s->sh_size);
	if (r < 0)
		return r;
	r = elf_reader_at(from->image, s->sh_offset, g->strings + g->string_bytes,
			  (size_t)s->sh_size);
	if (r < 0)
		return r;
	*ret_at = g->string_bytes;
	g->string_bytes += (size_t)s->sh_size;
	g->strings[g->string_bytes++] = '\0';
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
 * Returns the executable segment of an address, or NULL. Tries the last one first: most functions
 * lie in the segment of the one before.
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

	/* Keys are file offsets of 32 bits. */
	if (!segment || segment->p_offset > UINT32_MAX ||
	    segment->p_filesz > UINT32_MAX - segment->p_offset)
		return 0;
	room = segment->p_filesz - (f->address - segment->p_vaddr);
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
 * Returns whether a symbol can name code: a function, or an untyped one of hand-written assembly.
 */
static bool names_code(const struct elf_reader *e, const Elf64_Sym *symbol, const char *text)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);
	size_t section = symbol->st_shndx;

	if (section == SHN_UNDEF || section == SHN_ABS || section == SHN_COMMON || !*text)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/*
	 * Skip "$x" and the like, which mark code and data for arm's disassemblers, and the
	 * assembler's ".L".
	 */
	return type == STT_NOTYPE && section < e->section_count &&
	       (e->sections[section].sh_flags & SHF_EXECINSTR) && *text != '$' && *text != '.';
}

/* Adds one symbol if it is valid. */
static int take_symbol(struct elf_gather *g, const struct table *t, const Elf64_Sym *symbol)
{
	uint64_t address = symbol->st_value;
	const char *text;

	if (symbol->st_name >= g->string_bytes - t->base)
		return 0;
	text = g->strings + t->base + symbol->st_name;
	if (!names_code(t->from, symbol, text))
		return 0;
	if (t->from->header.e_machine == EM_ARM)
		address &= ~1ULL; /* the low bit marks Thumb code */
	return elf_gather_push(g, &(struct elf_function){
					  .address = address + t->bias,
					  .bytes = symbol->st_size,
					  .text = t->base + symbol->st_name,
					  .rank = name_table_rank(
						  text, ELF64_ST_BIND(symbol->st_info) != STB_LOCAL,
						  ELF64_ST_TYPE(symbol->st_info) != STT_NOTYPE,
						  symbol->st_size != 0),
				  });
}

static int take_symbols(struct elf_gather *g, const struct table *t, const uint8_t *chunk,
			size_t count)
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

/* Reads the table's symbols, a chunk at a time. */
static int read_chunks(struct elf_gather *g, const struct table *t, const Elf64_Shdr *s)
{
	size_t whole = (size_t)MIN(s->sh_size, (uint64_t)CHUNK_BYTES);
	_cleanup_free_ uint8_t *chunk = malloc(MAX(whole, (size_t)1));
	uint64_t end = s->sh_offset + s->sh_size;
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

int elf_gather_symbols(struct elf_gather *g, const struct elf_reader *from, const Elf64_Shdr *s)
{
	size_t size = from->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct table t = { .from = from,
			   .bias = elf_reader_base(&g->file) - elf_reader_base(from) };
	int r;

	if (s->sh_entsize != size || s->sh_offset > from->image->bytes ||
	    s->sh_size > from->image->bytes - s->sh_offset || s->sh_link >= from->section_count ||
	    from->sections[s->sh_link].sh_type != SHT_STRTAB)
		return -EBADMSG;
	g->symbol_count += s->sh_size / size;
	if (g->symbol_count > g->limits.symbols)
		return -EFBIG;
	r = elf_gather_section(g, from, &from->sections[s->sh_link], &t.base);
	if (r < 0)
		return r;
	/* Make room for all at once; pages for symbols that are no functions stay untouched. */
	if (g->entry_count + s->sh_size / size > g->entry_space)
		r = grow_entries(g, g->entry_count + (size_t)(s->sh_size / size));
	if (r < 0)
		return r;
	return read_chunks(g, &t, s);
}
