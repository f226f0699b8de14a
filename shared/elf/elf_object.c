/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define CHUNK_SYMBOLS 4096u

/* The wanted addresses, and the current symbol table. */
struct search {
	const struct elf_reader *file;
	struct elf_object *objects;
	size_t count;
	const Elf64_Shdr *names; /* the section of the table's names */
};

/*
 * Finds the link address for a code mapping that begins at file offset `offset`. The kernel maps
 * whole pages, so the mapping may begin before its segment. In the file, the end of another segment
 * may be there.
 */
static bool find_code(const struct elf_reader *e, uint64_t offset, uint64_t *ret_address)
{
	for (size_t i = 0; i < e->segment_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];
		uint64_t before = p->p_align ? p->p_vaddr & (p->p_align - 1) : 0;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || before > p->p_offset ||
		    offset < p->p_offset - before || offset > UINT64_MAX - p->p_vaddr ||
		    (offset > p->p_offset && offset - p->p_offset >= p->p_filesz))
			continue;
		*ret_address = p->p_vaddr + offset - p->p_offset;
		return true;
	}
	return false;
}

/*
 * Converts o->address to a link address, o->target. False: it is in no writable segment of the
 * file.
 */
static bool place_object(const struct elf_reader *e, struct elf_object *o)
{
	uint64_t code;

	if (!find_code(e, o->code_offset, &code))
		return false;
	o->target = code + (o->address - o->code_address);
	for (size_t i = 0; i < e->segment_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_W) && o->target >= p->p_vaddr &&
		    o->target - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* Copies the name of a symbol, up to the end of the section. False: it has none. */
static bool read_name(const struct search *s, const Elf64_Sym *symbol, char *ret_name)
{
	char name[ELF_OBJECT_NAME_BYTES] = "";
	uint64_t bytes;

	if (symbol->st_name >= s->names->sh_size)
		return false;
	bytes = MIN(s->names->sh_size - symbol->st_name, (uint64_t)sizeof(name) - 1);
	if (s->names->sh_offset > UINT64_MAX - symbol->st_name ||
	    elf_reader_at(s->file->image, s->names->sh_offset + symbol->st_name, name,
			  (size_t)bytes) < 0 ||
	    !name[0])
		return false;
	memcpy(ret_name, name, sizeof(name));
	return true;
}

/*
 * Uses the symbol for the address if it contains the address and is smaller than the one found
 * before.
 */
static void take_symbol(const struct search *s, const Elf64_Sym *symbol, struct elf_object *o)
{
	uint64_t bytes = symbol->st_size; /* 0: a label, not a variable */

	if (!o->within || o->target < symbol->st_value || o->target - symbol->st_value >= bytes ||
	    (o->name[0] && bytes >= o->bytes) || !read_name(s, symbol, o->name))
		return;
	o->bytes = bytes;
	o->offset = o->target - symbol->st_value;
}

static void take_symbols(const struct search *s, const uint8_t *raw, size_t count)
{
	size_t size = s->file->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);

	for (size_t i = 0; i < count; i++) {
		Elf64_Sym symbol;
		Elf32_Sym narrow;

		if (s->file->wide) {
			memcpy(&symbol, raw + i * size, size);
		} else {
			memcpy(&narrow, raw + i * size, size);
			elf_reader_widen_symbol(&narrow, &symbol);
		}
		if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF ||
		    symbol.st_shndx == SHN_ABS)
			continue;
		for (size_t k = 0; k < s->count; k++)
			take_symbol(s, &symbol, &s->objects[k]);
	}
}

/*
 * Reads a symbol table in chunks; skips an invalid one. *ret_cut: it has more than
 * ELF_OBJECT_SYMBOLS_MAX symbols.
 */
static int read_table(struct search *s, const Elf64_Shdr *table, bool *ret_cut)
{
	size_t size = s->file->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	_cleanup_free_ uint8_t *raw = NULL;
	uint64_t count;

	if (table->sh_type == SHT_NOBITS || table->sh_entsize != size ||
	    table->sh_link >= s->file->section_count || table->sh_offset > s->file->image->bytes ||
	    table->sh_size > s->file->image->bytes - table->sh_offset)
		return 0;
	s->names = &s->file->sections[table->sh_link];
	if (s->names->sh_type != SHT_STRTAB)
		return 0;
	raw = malloc(CHUNK_SYMBOLS * size);
	if (!raw)
		return -ENOMEM;
	count = table->sh_size / size;
	*ret_cut = *ret_cut || count > ELF_OBJECT_SYMBOLS_MAX;
	count = MIN(count, (uint64_t)ELF_OBJECT_SYMBOLS_MAX);
	for (uint64_t i = 0; i < count; i += CHUNK_SYMBOLS) {
		size_t part = (size_t)MIN(count - i, (uint64_t)CHUNK_SYMBOLS);
		int r = elf_reader_at(s->file->image, table->sh_offset + i * size, raw,
				      part * size);

		if (r < 0)
			return r;
		take_symbols(s, raw, part);
	}
	return 0;
}

static int read_tables(struct search *s, struct elf_object_file *file)
{
	static const uint32_t types[] = { SHT_SYMTAB, SHT_DYNSYM };
	int r = 0;

	file->stripped = true;
	for (size_t t = 0; t < ARRAY_SIZE(types); t++)
		for (size_t i = 0; r == 0 && i < s->file->section_count; i++) {
			if (s->file->sections[i].sh_type != types[t])
				continue;
			if (types[t] == SHT_SYMTAB)
				file->stripped = false;
			r = read_table(s, &s->file->sections[i], &file->cut);
			break; /* a valid file has at most one table of each type (gABI) */
		}
	return r;
}

int elf_object_find(const struct elf_image *image, struct elf_object *objects, size_t n,
		    struct elf_object_file *ret_file)
{
	_cleanup_(elf_reader_done) struct elf_reader e = { 0 };
	struct search s = { .file = &e, .objects = objects, .count = n };
	struct elf_object_file file = { .stripped = false };
	bool any = false;
	int r = elf_reader_open(image, &e);

	if (r == 0)
		r = build_id_find_mapped(&e, &file.id);
	for (size_t i = 0; r == 0 && i < n; i++) {
		objects[i].within = place_object(&e, &objects[i]);
		objects[i].name[0] = '\0';
		any = any || objects[i].within;
	}
	if (r == 0 && any)
		r = elf_reader_sections(&e);
	if (r == 0 && any)
		r = read_tables(&s, &file);
	if (r == 0)
		*ret_file = file;
	return r;
}
