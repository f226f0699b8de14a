/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_plt.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define STUB_BYTES_MAX	32
#define STUB_NAME_BYTES 512 /* with the NUL; longer names are cut */
#define WHOLE_BYTES	(1u << 20)
#define SLOT_WORTH	4096u /* this many bytes at once cost as much as two small reads */
#define SUFFIX		"@plt"

/* Limit of slots without a symbol: each one is a search in all gathered functions. */
#define RESOLVERS_MAX 256

/* A slot of the global offset table, and the source of its value. */
struct slot {
	uint64_t address;
	uint64_t what; /* index of the symbol, or address of the resolver */
	bool resolver;
};

struct slots {
	struct elf_gather *gather;
	const Elf64_Shdr *symbols, *strings; /* .dynsym and its names; NULL: a static program */
	uint8_t *symbol_data, *string_data;  /* owned; NULL: too large, read in parts */
	struct slot *items; /* owned; sorted by address before the stubs are read */
	size_t count, space;
	size_t resolvers; /* resolvers searched so far */
};

static void slots_done(struct slots *s)
{
	free(s->items);
	free(s->symbol_data);
	free(s->string_data);
}

static int push_slot(struct slots *s, struct slot slot)
{
	if (s->count == ELF_PLT_SLOTS_MAX)
		return -EFBIG;
	if (array_reserve(&s->items, &s->space, s->count + 1, sizeof(*s->items)) < 0)
		return -ENOMEM;
	s->items[s->count++] = slot;
	return 0;
}

enum filling {
	FILL_NONE,
	FILL_SYMBOL, /* the address of a symbol */
	/* The result of the function at the addend: an IFUNC of this file. */
	FILL_RESOLVER,
};

static enum filling find_filling(unsigned int machine, uint32_t type)
{
	switch (machine) {
	case EM_X86_64:
		if (type == R_X86_64_IRELATIVE)
			return FILL_RESOLVER;
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ? FILL_SYMBOL
									       : FILL_NONE;
	case EM_AARCH64:
		if (type == R_AARCH64_IRELATIVE)
			return FILL_RESOLVER;
		return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT ? FILL_SYMBOL
										 : FILL_NONE;
	default:
		return FILL_NONE;
	}
}

/* Adds the slots that the relocations in `section` fill. */
static int take_relocations(struct slots *s, const Elf64_Shdr *section)
{
	_cleanup_free_ uint8_t *data = NULL;
	int r;

	if (section->sh_entsize != sizeof(Elf64_Rela))
		return 0;
	r = elf_reader_content(&s->gather->file, section, ELF_PLT_RELOCS_MAX, &data);
	if (r < 0)
		return r;
	for (size_t i = 0; i < section->sh_size / sizeof(Elf64_Rela); i++) {
		struct slot slot;
		enum filling filling;
		Elf64_Rela rela;

		memcpy(&rela, data + i * sizeof(rela), sizeof(rela));
		filling = find_filling(s->gather->file.header.e_machine,
				       (uint32_t)ELF64_R_TYPE(rela.r_info));
		if (filling == FILL_NONE || (filling == FILL_SYMBOL && !s->symbols))
			continue;
		slot = (struct slot){ .address = rela.r_offset, .what = ELF64_R_SYM(rela.r_info) };
		if (filling == FILL_RESOLVER)
			slot = (struct slot){ .address = rela.r_offset,
					      .what = (uint64_t)rela.r_addend,
					      .resolver = true };
		r = push_slot(s, slot);
		if (r < 0)
			return r;
	}
	return 0;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/*
 * Reads the symbols and names whole if they are small for the number of slots. Otherwise read_part
 * reads only the needed parts later.
 */
static int read_tables(struct slots *s)
{
	const struct elf_reader *e = &s->gather->file;
	size_t worth = MIN(s->count * SLOT_WORTH, (size_t)WHOLE_BYTES);
	int r;

	if (s->symbols->sh_size > worth || s->strings->sh_size > worth)
		return 0;
	r = elf_reader_content(e, s->symbols, WHOLE_BYTES, &s->symbol_data);
	if (r < 0)
		return r;
	return elf_reader_content(e, s->strings, WHOLE_BYTES, &s->string_data);
}

static int read_part(const struct slots *s, const Elf64_Shdr *section, const uint8_t *data,
		     uint64_t offset, void *to, size_t bytes)
{
	if (!data)
		return elf_reader_at(s->gather->file.image, section->sh_offset + offset, to, bytes);
	memcpy(to, data + offset, bytes);
	return 0;
}

/* Finds .dynsym. A static program has none: only resolvers fill its slots. */
static void find_symbols(struct slots *s)
{
	struct elf_reader *e = &s->gather->file;

	if (elf_reader_find(e, ".dynsym", &s->symbols) < 0 ||
	    s->symbols->sh_link >= e->section_count ||
	    s->symbols->sh_entsize != sizeof(Elf64_Sym)) {
		s->symbols = NULL;
		return;
	}
	s->strings = &e->sections[s->symbols->sh_link];
}

/*
 * Reads the relocations that fill slots: those of .dynsym, or all loaded ones in a static program.
 */
static int read_slots(struct slots *s)
{
	struct elf_reader *e = &s->gather->file;
	size_t index;
	int r;

	find_symbols(s);
	index = s->symbols ? (size_t)(s->symbols - e->sections) : 0;
	for (size_t i = 0; i < e->section_count; i++) {
		const Elf64_Shdr *section = &e->sections[i];

		if (section->sh_type != SHT_RELA || !(section->sh_flags & SHF_ALLOC) ||
		    (s->symbols && section->sh_link != index))
			continue;
		r = take_relocations(s, &e->sections[i]);
		if (r < 0)
			return r;
	}
	array_sort(s->items, s->count, sizeof(*s->items), compare_addresses);
	return s->symbols ? read_tables(s) : 0;
}

/* Reads the name of a symbol. False: it has none. */
static bool read_symbol_name(const struct slots *s, uint64_t index, char text[STUB_NAME_BYTES])
{
	Elf64_Sym symbol;
	size_t bytes;

	if (index >= s->symbols->sh_size / sizeof(symbol) ||
	    read_part(s, s->symbols, s->symbol_data, index * sizeof(symbol), &symbol,
		      sizeof(symbol)) < 0 ||
	    symbol.st_name == 0 || symbol.st_name >= s->strings->sh_size)
		return false;
	bytes = (size_t)MIN(s->strings->sh_size - symbol.st_name, (uint64_t)STUB_NAME_BYTES - 1);
	if (read_part(s, s->strings, s->string_data, symbol.st_name, text, bytes) < 0)
		return false;
	text[bytes] = '\0';
	return *text;
}

/* Finds the name of an IFUNC by the address of its resolver: the IFUNC symbol has that address. */
static bool find_resolver_name(struct slots *s, uint64_t address, char text[STUB_NAME_BYTES])
{
	const Elf64_Phdr *segment = elf_reader_code(&s->gather->file, address);
	const struct name_table_entry *best = NULL;

	if (!segment || s->resolvers++ >= RESOLVERS_MAX)
		return false;
	for (size_t i = 0; i < s->gather->entry_count; i++) {
		const struct name_table_entry *e = &s->gather->entries[i];

		if (e->key == (uint32_t)(segment->p_offset + address - segment->p_vaddr) &&
		    (!best || e->rank > best->rank))
			best = e;
	}
	if (!best)
		return false;
	snprintf(text, STUB_NAME_BYTES, "%.*s", STUB_NAME_BYTES - 1,
		 s->gather->strings + best->text);
	return true;
}

/* Decodes "jmp *slot(%rip)", after an optional endbr64 and bnd; `at` is the stub's address. */
static bool decode_x86_stub(const uint8_t *code, size_t bytes, uint64_t at, uint64_t *ret_slot)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t i = 0;
	int32_t far;

	if (bytes >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		i = sizeof(endbr64);
	if (i < bytes && code[i] == 0xf2)
		i++;
	if (bytes < i + 6 || code[i] != 0xff || code[i + 1] != 0x25)
		return false;
	memcpy(&far, code + i + 2, sizeof(far));
	*ret_slot = at + i + 6 + (uint64_t)(int64_t)far;
	return true;
}

/* Decodes "adrp x16, page; ldr x17, [x16, #offset]", after an optional bti. */
static bool decode_arm64_stub(const uint8_t *code, size_t bytes, uint64_t at, uint64_t *ret_slot)
{
	uint32_t words[3];
	size_t i = 0;
	int64_t pages;

	if (bytes < sizeof(words))
		return false;
	memcpy(words, code, sizeof(words));
	if ((words[0] & 0xffffff3f) == 0xd503241f)
		i = 1;
	if ((words[i] & 0x9f00001f) != 0x90000010 || (words[i + 1] & 0xffc003ff) != 0xf9400211)
		return false;
	pages = (int64_t)((words[i] >> 5 & 0x7ffff) << 2 | (words[i] >> 29 & 3));
	if (pages & 0x100000)
		pages -= 0x200000;
	*ret_slot = ((at + i * 4) & ~0xfffULL) + (uint64_t)pages * 4096 +
		    (words[i + 1] >> 10 & 0xfff) * 8;
	return true;
}

static bool decode_stub(unsigned int machine, const uint8_t *code, size_t bytes, uint64_t at,
			uint64_t *ret_slot)
{
	return machine == EM_X86_64 ? decode_x86_stub(code, bytes, at, ret_slot)
				    : decode_arm64_stub(code, bytes, at, ret_slot);
}

/* Adds one stub if a relocation fills its slot, the one at `address`, and the slot has a name. */
static int take_stub(struct slots *s, uint64_t at, uint64_t bytes, uint64_t address)
{
	const struct slot wanted = { .address = address };
	const struct slot *slot =
		array_find(&wanted, s->items, s->count, sizeof(wanted), compare_addresses);
	char text[STUB_NAME_BYTES + sizeof(SUFFIX)];
	size_t place, length;
	int r;

	if (!slot)
		return 0;
	if (slot->resolver ? !find_resolver_name(s, slot->what, text)
			   : !read_symbol_name(s, slot->what, text))
		return 0;
	length = strlen(text);
	memcpy(text + length, SUFFIX, sizeof(SUFFIX));
	r = elf_gather_text(s->gather, text, length + sizeof(SUFFIX) - 1, &place);
	if (r < 0)
		return r;
	return elf_gather_push(s->gather, &(struct elf_function){
						  .address = at,
						  .bytes = bytes,
						  .text = place,
						  .rank = name_table_rank(text, 0, 1, 1),
					  });
}

/*
 * Returns the size of a stub from the section's sh_entsize. In .plt it is 16, although the header
 * there may be longer.
 */
static size_t find_stub_bytes(const Elf64_Shdr *section)
{
	return section->sh_entsize == 8 || section->sh_entsize == STUB_BYTES_MAX
		       ? (size_t)section->sh_entsize
		       : 16;
}

static int read_stubs(struct slots *s, const char *name)
{
	struct elf_reader *e = &s->gather->file;
	_cleanup_free_ uint8_t *code = NULL;
	const Elf64_Shdr *section;
	size_t step;
	int r;

	if (elf_reader_find(e, name, &section) < 0)
		return 0;
	r = elf_reader_content(e, section, ELF_PLT_BYTES_MAX, &code);
	if (r < 0)
		return r;
	step = find_stub_bytes(section);
	for (size_t at = 0; at + step <= section->sh_size; at += step) {
		uint64_t address;

		if (!decode_stub(e->header.e_machine, code + at, step, section->sh_addr + at,
				 &address))
			continue;
		r = take_stub(s, section->sh_addr + at, step, address);
		if (r < 0)
			return r;
	}
	return 0;
}

int elf_plt_read(struct elf_gather *g)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	_cleanup_(slots_done) struct slots s = { .gather = g };
	const Elf64_Shdr *any;
	bool some = false;
	int r;

	if (!g->file.wide)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		some = some || elf_reader_find(&g->file, sections[i], &any) == 0;
	if (!some)
		return 0;
	r = read_slots(&s);
	for (size_t i = 0; r >= 0 && s.count > 0 && i < ARRAY_SIZE(sections); i++)
		r = read_stubs(&s, sections[i]);
	return r;
}
