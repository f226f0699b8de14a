/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/elf_symbols.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "consumer/symbols/elf_reader.h"
#include "shared/cleanup.h"
#include "shared/macro.h"

#define CHUNK_BYTES (96u << 10) /* symbols read at a time: a multiple of both symbol sizes */

/* What is gathered while one file is read. */
struct gather {
	struct elf_reader file;
	char *strings; /* owned; all string tables, each with a NUL behind it */
	size_t string_bytes;
	struct names_entry *entries; /* owned */
	size_t entry_count, entry_space;
	uint64_t symbol_count; /* looked at, functions or not */
};

static void elf_symbols_freep(struct elf_symbols **s)
{
	elf_symbols_free(*s);
}

static void gather_done(struct gather *g)
{
	elf_reader_done(&g->file);
	free(g->strings);
	free(g->entries);
}

/* The executable segment whose file bytes hold the virtual address, or NULL. */
static const Elf64_Phdr *code_segment(const struct elf_reader *e, uint64_t address)
{
	for (size_t i = 0; i < e->segment_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz)
			return p;
	}
	return NULL;
}

/* Appends string table `s` to the strings, with a NUL behind it. */
static int append_strings(struct gather *g, const Elf64_Shdr *s)
{
	char *more;
	int r;

	if (s->sh_offset > g->file.image->bytes || s->sh_size > g->file.image->bytes - s->sh_offset)
		return -EBADMSG;
	if (g->string_bytes + s->sh_size + 1 > ELF_STRINGS_MAX)
		return -EFBIG;
	more = realloc(g->strings, g->string_bytes + (size_t)s->sh_size + 1);
	if (!more)
		return -ENOMEM;
	g->strings = more;
	r = elf_reader_at(g->file.image, s->sh_offset, g->strings + g->string_bytes,
			  (size_t)s->sh_size);
	if (r < 0)
		return r;
	g->string_bytes += (size_t)s->sh_size;
	g->strings[g->string_bytes++] = '\0';
	return 0;
}

/* Whether a symbol can name code: functions, and untyped ones that hand-written assembly leaves. */
static bool names_code(const struct elf_reader *e, const Elf64_Sym *symbol, const char *text)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);
	size_t section = symbol->st_shndx;

	if (section == SHN_UNDEF || section == SHN_ABS || section == SHN_COMMON || !*text)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* "$x" and the like mark code and data for arm's disassemblers, ".L" are the assembler's */
	return type == STT_NOTYPE && section < e->section_count &&
	       (e->sections[section].sh_flags & SHF_EXECINSTR) && *text != '$' && *text != '.';
}

static int push(struct gather *g, struct names_entry entry)
{
	if (g->entry_count == g->entry_space) {
		size_t space = MAX(g->entry_space * 2, (size_t)1024);
		struct names_entry *more = realloc(g->entries, space * sizeof(*more));

		if (!more)
			return -ENOMEM;
		g->entries = more;
		g->entry_space = space;
	}
	g->entries[g->entry_count++] = entry;
	return 0;
}

/* Takes one symbol whose names start at `base` in the strings, when it makes sense. */
static int take_symbol(struct gather *g, const Elf64_Sym *symbol, size_t base)
{
	const Elf64_Phdr *segment;
	uint64_t address = symbol->st_value, room;
	const char *text;

	if (symbol->st_name >= g->string_bytes - base)
		return 0;
	text = g->strings + base + symbol->st_name;
	if (!names_code(&g->file, symbol, text))
		return 0;
	if (g->file.header.e_machine == EM_ARM)
		address &= ~1ULL; /* the low bit says Thumb */
	segment = code_segment(&g->file, address);
	if (!segment || segment->p_offset > ELF_FILE_MAX || segment->p_filesz > ELF_FILE_MAX)
		return 0;
	room = segment->p_filesz - (address - segment->p_vaddr);
	return push(g,
		    (struct names_entry){
			    .key = (uint32_t)(segment->p_offset + address - segment->p_vaddr),
			    .size = (uint32_t)(symbol->st_size ? MIN(symbol->st_size, room) : room),
			    .text = (uint32_t)(base + symbol->st_name),
			    .rank = names_rank(text, ELF64_ST_BIND(symbol->st_info) != STB_LOCAL,
					       ELF64_ST_TYPE(symbol->st_info) != STT_NOTYPE,
					       symbol->st_size != 0),
			    .open = symbol->st_size == 0,
		    });
}

static int take_symbols(struct gather *g, const uint8_t *chunk, size_t count, size_t base)
{
	for (size_t i = 0; i < count; i++) {
		Elf64_Sym symbol;
		int r;

		if (g->file.wide)
			symbol = ((const Elf64_Sym *)(const void *)chunk)[i];
		else
			elf_reader_widen_symbol((const Elf32_Sym *)(const void *)chunk + i,
						&symbol);
		r = take_symbol(g, &symbol, base);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Reads one symbol table, a chunk at a time, with its string table. */
static int read_symbols(struct gather *g, const Elf64_Shdr *s)
{
	size_t size = g->file.wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym), base = g->string_bytes;
	uint64_t end = s->sh_offset + s->sh_size;
	_cleanup_free_ uint8_t *chunk = NULL;
	int r;

	if (s->sh_entsize != size || s->sh_offset > g->file.image->bytes ||
	    s->sh_size > g->file.image->bytes - s->sh_offset ||
	    s->sh_link >= g->file.section_count ||
	    g->file.sections[s->sh_link].sh_type != SHT_STRTAB)
		return -EBADMSG;
	g->symbol_count += s->sh_size / size;
	if (g->symbol_count > ELF_SYMBOLS_MAX)
		return -EFBIG;
	r = append_strings(g, &g->file.sections[s->sh_link]);
	if (r < 0)
		return r;
	chunk = malloc(CHUNK_BYTES);
	if (!chunk)
		return -ENOMEM;
	for (uint64_t at = s->sh_offset; at < end; at += CHUNK_BYTES) {
		size_t bytes = (size_t)MIN(end - at, (uint64_t)CHUNK_BYTES);

		r = elf_reader_at(g->file.image, at, chunk, bytes);
		if (r < 0)
			return r;
		r = take_symbols(g, chunk, bytes / size, base);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The first section of a type: there is at most one of each table in any sane file (gABI). */
static const Elf64_Shdr *find_section(const struct elf_reader *e, uint32_t type)
{
	for (size_t i = 0; i < e->section_count; i++)
		if (e->sections[i].sh_type == type)
			return &e->sections[i];
	return NULL;
}

static int read_symtab(struct gather *g)
{
	const Elf64_Shdr *s = find_section(&g->file, SHT_SYMTAB);

	return s ? read_symbols(g, s) : 0;
}

/*
 * strip(1) takes .symtab away whole, so a .symtab at least as long as .dynsym holds all of it: the
 * second reading would cost a large file half of its time. Only a hand-thinned .symtab is shorter.
 */
static int read_dynsym(struct gather *g)
{
	const Elf64_Shdr *s = find_section(&g->file, SHT_DYNSYM);

	if (s && s->sh_entsize > 0 && s->sh_size / s->sh_entsize <= g->symbol_count)
		return 0;
	return s ? read_symbols(g, s) : 0;
}

/* Name sources, first come first kept where all else is equal; debug files and the like go here. */
static int (*const sources[])(struct gather *g) = { read_symtab, read_dynsym };

int elf_symbols_build_id(const struct elf_image *image, uint8_t id[ELF_BUILD_ID_MAX],
			 uint8_t *ret_bytes)
{
	_cleanup_(elf_reader_done) struct elf_reader e = { 0 };
	int r;

	r = elf_reader_open(image, &e);
	if (r < 0)
		return r;
	return elf_reader_build_id(&e, id, ret_bytes);
}

int elf_symbols_read(const struct elf_image *image, struct elf_symbols **ret_symbols)
{
	_cleanup_(elf_symbols_freep) struct elf_symbols *s = calloc(1, sizeof(*s));
	_cleanup_(gather_done) struct gather g = { 0 };
	int r;

	if (!s)
		return -ENOMEM;
	r = elf_reader_open(image, &g.file);
	if (r < 0)
		return r;
	r = elf_reader_build_id(&g.file, s->build_id, &s->build_id_bytes);
	if (r < 0)
		return r;
	r = elf_reader_sections(&g.file);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(sources); i++)
		r = sources[i](&g);
	if (r < 0)
		return r;
	r = names_build(g.entries, g.entry_count, g.strings, g.string_bytes, 1, &s->names);
	if (r < 0)
		return r;
	*ret_symbols = TAKE_PTR(s);
	return 0;
}

void elf_symbols_free(struct elf_symbols *s)
{
	if (!s)
		return;
	names_done(&s->names);
	free(s);
}

const char *elf_symbols_find(const struct elf_symbols *s, uint64_t offset, uint64_t *ret_start)
{
	ptrdiff_t i = offset > UINT32_MAX ? -1 : names_find(&s->names, (uint32_t)offset);

	if (i < 0)
		return NULL;
	*ret_start = s->names.keys[i];
	return names_text(&s->names, (size_t)i);
}

size_t elf_symbols_bytes(const struct elf_symbols *s)
{
	return sizeof(*s) + names_bytes(&s->names);
}
