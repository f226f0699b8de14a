/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_go.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

enum layout {
	GO_1_2,	 /* table of (address, record); names count from the section's start */
	GO_1_16, /* names and functions have separate parts */
	GO_1_18, /* 32-bit offsets from the start of the text */
};

#define WORD	   8 /* bytes of a pointer */
#define HEADER_MAX (8 + 8 * WORD)

/* Indices of words in runtime.moduledata (Go's runtime/symtab.go). */
#define MODULE_HEADER	 0  /* address of the table's header */
#define MODULE_LOWEST	 20 /* lowest address of a function */
#define MODULE_TEXT	 22 /* start of the text */
#define MODULE_BYTES_MAX (1u << 20)

struct go_table {
	struct elf_gather *gather;
	const uint8_t *data; /* in the gather's strings: invalid after elf_gather_text */
	size_t at;	     /* offset of the section in the gather's strings */
	size_t bytes;
	uint64_t address; /* of the section */
	enum layout layout;
	uint64_t count;	    /* functions */
	uint64_t text;	    /* start of the text, since Go 1.18 */
	uint64_t names;	    /* offset of the names in the section */
	uint64_t functions; /* offset of the functions' table in the section */
};

static uint64_t read_word(const struct go_table *t, uint64_t offset, size_t bytes)
{
	uint64_t word = 0;

	memcpy(&word, t->data + offset, bytes); /* the low bytes: little-endian machines only */
	return word;
}

/* Returns whether `count` items of `bytes` bytes at `offset` are within the section. */
static bool holds_items(const struct go_table *t, uint64_t offset, uint64_t count, uint64_t bytes)
{
	return offset <= t->bytes && count <= (t->bytes - offset) / bytes;
}

static int find_layout(struct go_table *t)
{
	if (t->bytes < HEADER_MAX || t->data[4] != 0 || t->data[5] != 0 || t->data[7] != WORD)
		return -EBADMSG;
	switch (read_word(t, 0, 4)) {
	case 0xfffffffb:
		t->layout = GO_1_2;
		return 0;
	case 0xfffffffa:
		t->layout = GO_1_16;
		return 0;
	case 0xfffffff0:
	case 0xfffffff1:
		t->layout = GO_1_18;
		return 0;
	default:
		return -EBADMSG;
	}
}

/* Finds the addend of the relocation that fills the word at `address`; 0: there is none. */
static int find_addend(struct go_table *t, const Elf64_Shdr *s, uint64_t address,
		       uint64_t *ret_addend)
{
	_cleanup_free_ uint8_t *data = NULL;
	int r;

	*ret_addend = 0;
	r = elf_reader_content(&t->gather->file, s, t->gather->limits.string_bytes, &data);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->sh_size / sizeof(Elf64_Rela); i++) {
		Elf64_Rela rela;

		memcpy(&rela, data + i * sizeof(rela), sizeof(rela));
		if (rela.r_offset == address) {
			*ret_addend = (uint64_t)rela.r_addend;
			return 0;
		}
	}
	return 0;
}

/*
 * Reads the word at `data`, with the link address `address`. In a position-independent program a
 * relocation fills the word at start: then returns the addend of that relocation.
 */
static int read_filled_word(struct go_table *t, const uint8_t *data, uint64_t address,
			    uint64_t *ret_word)
{
	const struct elf_reader *e = &t->gather->file;
	uint64_t word = 0;
	int r;

	memcpy(&word, data, WORD);
	for (size_t i = 0; word == 0 && i < e->section_count; i++) {
		if (e->sections[i].sh_type != SHT_RELA)
			continue;
		r = find_addend(t, &e->sections[i], address, &word);
		if (r < 0)
			return r;
	}
	*ret_word = word;
	return 0;
}

/* Reads row `i` of the functions' table: the function's address and the offset of its record. */
static void read_row(const struct go_table *t, uint64_t i, uint64_t *ret_address,
		     uint64_t *ret_record)
{
	size_t half = t->layout == GO_1_18 ? 4 : WORD;
	uint64_t at = t->functions + i * 2 * half, base = t->layout == GO_1_2 ? 0 : t->functions;

	*ret_address = read_word(t, at, half) + (t->layout == GO_1_18 ? t->text : 0);
	*ret_record = read_word(t, at + half, half) + base;
}

/* Finds the offset of the name of the function with this record; -ENOENT: it has none. */
static int find_name(const struct go_table *t, uint64_t record, uint64_t *ret_name)
{
	size_t entry = t->layout == GO_1_18 ? 4 : WORD;
	uint64_t name;

	if (!holds_items(t, record, 1, entry + 4))
		return -EBADMSG;
	name = t->names + read_word(t, record + entry, 4);
	if (name >= t->bytes || t->data[name] == '\0')
		return -ENOENT;
	*ret_name = name;
	return 0;
}

/*
 * Takes the start of the text from runtime.moduledata, which linkers of Go 1.26 and later put into
 * a section of its own. Uses it only if it refers to this table, and its lowest address is that of
 * the table's first function.
 */
static int find_module_text(struct go_table *t)
{
	_cleanup_free_ uint8_t *data = NULL;
	static const size_t words[] = { MODULE_HEADER, MODULE_LOWEST, MODULE_TEXT };
	uint64_t found[ARRAY_SIZE(words)], first, record;
	const Elf64_Shdr *s;
	int r;

	if (elf_reader_find(&t->gather->file, ".go.module", &s) < 0 ||
	    s->sh_size < (MODULE_TEXT + 1) * WORD)
		return 0;
	r = elf_reader_content(&t->gather->file, s, MODULE_BYTES_MAX, &data);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(words); i++)
		r = read_filled_word(t, data + words[i] * WORD, s->sh_addr + words[i] * WORD,
				     &found[i]);
	if (r < 0)
		return r;
	read_row(t, 0, &first, &record);
	if (found[0] == t->address && found[1] == found[2] + first)
		t->text = found[2];
	return 0;
}

/* Returns whether `name` is a name of Go's own entry point, such as _rt0_amd64_linux. */
static bool is_entry_name(const char *name)
{
	static const char start[] = "_rt0_", end[] = "_linux";
	size_t bytes = strnlen(name, NAME_TABLE_TEXT_BYTES);

	return strncmp(name, start, strlen(start)) == 0 && bytes > strlen(end) &&
	       strcmp(name + bytes - strlen(end), end) == 0;
}

/*
 * Takes the start of section .text, where Go's own linker puts the text. Another linker puts the C
 * library's code there first. So uses it only if the program's entry address is then Go's entry
 * point.
 */
static int find_entry_text(struct go_table *t)
{
	const Elf64_Shdr *s;
	uint64_t offset, record, name;

	if (elf_reader_find(&t->gather->file, ".text", &s) < 0)
		return 0;
	for (uint64_t i = 0; i < t->count; i++) {
		read_row(t, i, &offset, &record);
		if (s->sh_addr + offset != t->gather->file.header.e_entry ||
		    find_name(t, record, &name) < 0 || !is_entry_name((const char *)t->data + name))
			continue;
		t->text = s->sh_addr;
		break;
	}
	return 0;
}

/*
 * Finds the start of the text, from which the table counts. The header has it in versions before Go
 * 1.26. -ENODATA: no reliable source.
 */
static int find_text(struct go_table *t)
{
	const size_t at = 8 + 2 * WORD;
	int r;

	r = read_filled_word(t, t->data + at, t->address + at, &t->text);
	if (r >= 0 && t->text == 0)
		r = find_module_text(t);
	if (r >= 0 && t->text == 0)
		r = find_entry_text(t);
	if (r < 0)
		return r;
	return t->text != 0 ? 0 : -ENODATA;
}

/* Checks that the functions' table is within the section. */
static int check_functions(struct go_table *t)
{
	size_t half = t->layout == GO_1_18 ? 4 : WORD;

	/*
	 * The half row after the last one has the end of the last function. take_function reads a
	 * whole row there: if the section has only half of it, omit the last function.
	 */
	if (!holds_items(t, t->functions, t->count + 1, 2 * half) && t->count > 0)
		t->count--;
	return holds_items(t, t->functions, t->count + 1, 2 * half) ? 0 : -EBADMSG;
}

static int read_header(struct go_table *t)
{
	size_t names;
	int r;

	r = find_layout(t);
	if (r < 0)
		return r;
	t->count = read_word(t, 8, WORD);
	if (t->count > t->gather->limits.symbols)
		return -EFBIG;
	names = t->layout == GO_1_16 ? 8 + 2 * WORD : 8 + 3 * WORD;
	t->names = t->layout == GO_1_2 ? 0 : read_word(t, names, WORD);
	t->functions = t->layout == GO_1_2 ? 8 + WORD : read_word(t, names + 4 * WORD, WORD);
	r = check_functions(t);
	if (r < 0)
		return r;
	return t->layout == GO_1_18 ? find_text(t) : 0;
}

/* Adds function `i`, which ends where the next one begins. -EBADMSG: the table is broken. */
static int take_function(struct go_table *t, uint64_t i)
{
	uint64_t address, next, record, other, name;
	int r;

	read_row(t, i, &address, &record);
	read_row(t, i + 1, &next, &other);
	if (next < address)
		return -EBADMSG;
	r = find_name(t, record, &name);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return elf_gather_push(t->gather,
			       &(struct elf_function){
				       .address = address,
				       .bytes = next - address,
				       .text = t->at + (size_t)name,
				       .rank = name_table_rank((const char *)t->data + name, 0, 1,
							       next != address),
			       });
}

static int read_functions(struct go_table *t)
{
	int r;

	for (uint64_t i = 0; i < t->count; i++) {
		r = take_function(t, i);
		if (r < 0)
			return r;
	}
	return 0;
}

int elf_go_read(struct elf_gather *g)
{
	static const char *const sections[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	struct go_table t = { .gather = g };
	const Elf64_Shdr *s = NULL;
	int r;

	if (!g->file.wide || g->file.header.e_ident[EI_DATA] != ELFDATA2LSB)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(sections) && !s; i++)
		if (elf_reader_find(&g->file, sections[i], &s) < 0)
			s = NULL;
	if (!s)
		return 0;
	r = elf_gather_section(g, &g->file, s, &t.at);
	if (r < 0)
		return r;
	t.data = (const uint8_t *)g->strings + t.at;
	t.bytes = (size_t)s->sh_size;
	t.address = s->sh_addr;
	r = read_header(&t);
	return r < 0 ? r : read_functions(&t);
}
