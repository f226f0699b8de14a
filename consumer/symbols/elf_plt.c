/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/elf_plt.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/cleanup.h"
#include "shared/macro.h"

#define STUB_BYTES_MAX 32

/* Slots without a symbol whose function is looked for among all that were gathered. */
#define RESOLVERS_MAX 256

/* A slot of the global offset table and the name of what it will point to. */
struct slot {
	uint64_t address;
	size_t text; /* of the name, in the gather's strings */
};

struct slots {
	struct elf_gather *gather;
	struct slot *items; /* owned; sorted by address before the stubs are read */
	size_t count, space;
	uint8_t *symbols; /* owned; .dynsym */
	size_t symbol_count;
	size_t names, names_end; /* where its names lie in the gather's strings */
	size_t resolvers;	 /* looked for */
};

static void slots_done(struct slots *s)
{
	free(s->items);
	free(s->symbols);
}

static int push(struct slots *s, uint64_t address, size_t text)
{
	if (s->count == ELF_PLT_SLOTS_MAX)
		return -EFBIG;
	if (s->count == s->space) {
		size_t space = MAX(s->space * 2, (size_t)256);
		struct slot *more = realloc(s->items, space * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->items = more;
		s->space = space;
	}
	s->items[s->count++] = (struct slot){ .address = address, .text = text };
	return 0;
}

enum filling {
	FILL_NONE,
	FILL_SYMBOL,   /* with the address of a symbol */
	FILL_RESOLVER, /* with what the function at the addend returns: an IFUNC of this file */
};

static enum filling filling_of(unsigned int machine, uint32_t type)
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

/* The name of a relocation's symbol; false when it has none. */
static bool symbol_name(const struct slots *s, const Elf64_Rela *rela, size_t *ret_text)
{
	Elf64_Sym symbol;

	if (ELF64_R_SYM(rela->r_info) >= s->symbol_count)
		return false;
	memcpy(&symbol, s->symbols + ELF64_R_SYM(rela->r_info) * sizeof(symbol), sizeof(symbol));
	if (symbol.st_name == 0 || symbol.st_name >= s->names_end - s->names)
		return false;
	*ret_text = s->names + symbol.st_name;
	return true;
}

/* The name of the IFUNC whose resolver stands at the addend: both have that address. */
static bool resolver_name(struct slots *s, const Elf64_Rela *rela, size_t *ret_text)
{
	uint64_t address = (uint64_t)rela->r_addend;
	const Elf64_Phdr *segment = elf_reader_code(&s->gather->file, address);
	const struct names_entry *best = NULL;

	if (!segment || s->resolvers++ >= RESOLVERS_MAX)
		return false;
	for (size_t i = 0; i < s->gather->entry_count; i++) {
		const struct names_entry *e = &s->gather->entries[i];

		if (e->key == (uint32_t)(segment->p_offset + address - segment->p_vaddr) &&
		    (!best || e->rank > best->rank))
			best = e;
	}
	*ret_text = best ? best->text : 0;
	return best != NULL;
}

static bool slot_name(struct slots *s, const Elf64_Rela *rela, size_t *ret_text)
{
	switch (filling_of(s->gather->file.header.e_machine,
			   (uint32_t)ELF64_R_TYPE(rela->r_info))) {
	case FILL_SYMBOL:
		return symbol_name(s, rela, ret_text);
	case FILL_RESOLVER:
		return resolver_name(s, rela, ret_text);
	case FILL_NONE:
		break;
	}
	return false;
}

/* Takes the slots that `section` fills. */
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
		Elf64_Rela rela;
		size_t text;

		memcpy(&rela, data + i * sizeof(rela), sizeof(rela));
		if (!slot_name(s, &rela, &text))
			continue;
		r = push(s, rela.r_offset, text);
		if (r < 0)
			return r;
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Reads .dynsym and the relocations against it. */
static int read_slots(struct slots *s)
{
	struct elf_reader *e = &s->gather->file;
	const Elf64_Shdr *dynsym;
	size_t index;
	int r;

	if (elf_reader_find(e, ".dynsym", &dynsym) < 0 || dynsym->sh_link >= e->section_count ||
	    dynsym->sh_entsize != sizeof(Elf64_Sym))
		return 0;
	index = (size_t)(dynsym - e->sections);
	r = elf_reader_content(e, dynsym, ELF_SYMBOLS_MAX * sizeof(Elf64_Sym), &s->symbols);
	if (r < 0)
		return r;
	s->symbol_count = (size_t)dynsym->sh_size / sizeof(Elf64_Sym);
	r = elf_gather_section(s->gather, e, &e->sections[dynsym->sh_link], &s->names);
	if (r < 0)
		return r;
	s->names_end = s->gather->string_bytes;
	for (size_t i = 0; i < e->section_count; i++) {
		if (e->sections[i].sh_type != SHT_RELA || e->sections[i].sh_link != index)
			continue;
		r = take_relocations(s, &e->sections[i]);
		if (r < 0)
			return r;
	}
	if (s->count > 1)
		qsort(s->items, s->count, sizeof(*s->items), by_address);
	return 0;
}

/* "jmp *slot(%rip)", after an optional endbr64 and bnd; `at` is the stub's own address. */
static bool x86_stub(const uint8_t *code, size_t bytes, uint64_t at, uint64_t *ret_slot)
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

/* "adrp x16, page; ldr x17, [x16, #offset]", after an optional bti. */
static bool arm64_stub(const uint8_t *code, size_t bytes, uint64_t at, uint64_t *ret_slot)
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

static bool stub(unsigned int machine, const uint8_t *code, size_t bytes, uint64_t at,
		 uint64_t *ret_slot)
{
	return machine == EM_X86_64 ? x86_stub(code, bytes, at, ret_slot)
				    : arm64_stub(code, bytes, at, ret_slot);
}

/* Takes one stub, when a relocation fills the slot that it jumps through. */
static int take_stub(struct slots *s, uint64_t at, uint64_t bytes, uint64_t address)
{
	struct slot wanted = { .address = address }, *slot;
	struct elf_gather *g = s->gather;
	char text[NAMES_TEXT_BYTES];
	size_t length, place;
	int r;

	slot = s->count ? bsearch(&wanted, s->items, s->count, sizeof(wanted), by_address) : NULL;
	if (!slot)
		return 0;
	length = strnlen(g->strings + slot->text, sizeof(text) - 5);
	memcpy(text, g->strings + slot->text, length);
	memcpy(text + length, "@plt", 4);
	r = elf_gather_text(g, text, length + 4, &place);
	if (r < 0)
		return r;
	return elf_gather_push(g, &(struct elf_function){
					  .address = at,
					  .bytes = bytes,
					  .text = place,
					  .rank = names_rank(g->strings + place, 0, 1, 1),
				  });
}

/* Bytes of a stub by the section's own word; .plt's says 16 although its header may be longer. */
static size_t stub_bytes(const Elf64_Shdr *section)
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
	step = stub_bytes(section);
	for (size_t at = 0; at + step <= section->sh_size; at += step) {
		uint64_t address;

		if (!stub(e->header.e_machine, code + at, step, section->sh_addr + at, &address))
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
