/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/resolve_symbols.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "shared/cleanup.h"
#include "shared/macro.h"

#define UNDERSCORES	    15 /* leading underscores that the rank tells apart */
#define UNPACK_MEMORY_BYTES (20ULL << 20)

/* As names_rank of the agent. */
enum rank_bit {
	RANK_SIZED = 1u << 4,
	RANK_FUNCTION = 1u << 5,
	RANK_GLOBAL = 1u << 6,
};

/* One symbol table while it is read. */
struct table {
	Elf *elf;
	Elf_Data *data;
	GElf_Shdr header;
	uint64_t bias; /* what an address of it lacks of the code's own: prelink(8) moves files */
	bool code;     /* its sections are there */
};

static int add_segment(struct resolve_symbols *s, const GElf_Phdr *p, uint64_t offset,
		       uint64_t bytes)
{
	if (s->n_segments == RESOLVE_SEGMENTS_MAX)
		return -EBADMSG;
	s->segments[s->n_segments++] = (struct resolve_segment){
		.offset = offset,
		.address = p->p_vaddr,
		.bytes = bytes,
	};
	return 0;
}

/* The next offset from `end` on that agrees with the segment's address in the page. */
static uint64_t next_offset(uint64_t end, const GElf_Phdr *p)
{
	uint64_t page = p->p_align > 1 ? p->p_align : 1;

	return end + (p->p_vaddr - end) % page;
}

int resolve_symbols_segments(struct resolve_symbols *s, Elf *elf, bool split)
{
	uint64_t end = 0;
	size_t n = 0;
	int r = 0;

	if (elf_getphdrnum(elf, &n) < 0)
		return -EBADMSG;
	for (size_t i = 0; r == 0 && i < n; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(elf, (int)i, &p))
			return -EBADMSG;
		if (p.p_type != PT_LOAD)
			continue;
		/* eu-strip(1) leaves the headers as they were, objcopy(1) empties the segments. */
		if (!split || p.p_filesz == p.p_memsz) {
			if (p.p_flags & PF_X)
				r = add_segment(s, &p, p.p_offset, p.p_filesz);
			end = p.p_offset + p.p_filesz;
			continue;
		}
		/* Behind data that is not all in the file, nobody can count. */
		if (p.p_flags & PF_W)
			break;
		end = end ? next_offset(end, &p) : 0;
		if (p.p_flags & PF_X)
			r = add_segment(s, &p, end, p.p_memsz);
		end += p.p_memsz;
	}
	return r < 0 || s->n_segments ? r : -ENODATA;
}

bool resolve_symbols_address(const struct resolve_symbols *s, uint64_t offset,
			     uint64_t *ret_address)
{
	for (size_t i = 0; i < s->n_segments; i++) {
		const struct resolve_segment *at = &s->segments[i];

		if (offset >= at->offset && offset - at->offset < at->bytes) {
			*ret_address = at->address + (offset - at->offset);
			return true;
		}
	}
	return false;
}

uint64_t resolve_symbols_base(Elf *elf)
{
	size_t n = 0;
	GElf_Phdr p;

	if (elf_getphdrnum(elf, &n) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD)
			return p.p_vaddr;
	return 0;
}

static int push(struct resolve_symbols *s, struct resolve_symbol symbol)
{
	if (s->count == RESOLVE_SYMBOLS_MAX)
		return -EFBIG;
	if (s->count == s->space) {
		size_t space = MAX(s->space * 2, (size_t)1024);
		struct resolve_symbol *more = reallocarray(s->symbols, space, sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->symbols = more;
		s->space = space;
	}
	symbol.order = (uint32_t)s->count;
	s->symbols[s->count++] = symbol;
	return 0;
}

/* Whether a symbol can name code: functions, and untyped ones that hand-written assembly leaves. */
static bool names_code(const struct table *t, const GElf_Sym *symbol, const char *name)
{
	unsigned int type = GELF_ST_TYPE(symbol->st_info);
	GElf_Shdr header;

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS ||
	    symbol->st_shndx == SHN_COMMON || !*name)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* "$x" and the like mark code and data for arm's disassemblers, ".L" are the assembler's */
	return type == STT_NOTYPE && *name != '$' && *name != '.' &&
	       gelf_getshdr(elf_getscn(t->elf, symbol->st_shndx), &header) &&
	       header.sh_flags & SHF_EXECINSTR;
}

static uint16_t rank_of(const GElf_Sym *symbol, const char *name)
{
	unsigned int rank = UNDERSCORES;

	while (rank > 0 && name[UNDERSCORES - rank] == '_')
		rank--;
	if (GELF_ST_BIND(symbol->st_info) != STB_LOCAL)
		rank |= RANK_GLOBAL;
	if (GELF_ST_TYPE(symbol->st_info) != STT_NOTYPE)
		rank |= RANK_FUNCTION;
	if (symbol->st_size)
		rank |= RANK_SIZED;
	return (uint16_t)rank;
}

static int take_symbol(struct resolve_symbols *s, const struct table *t, GElf_Sym symbol)
{
	const char *name = elf_strptr(t->elf, t->header.sh_link, symbol.st_name);
	GElf_Ehdr header;

	if (!name || !names_code(t, &symbol, name))
		return 0;
	if (gelf_getehdr(t->elf, &header) && header.e_machine == EM_ARM)
		symbol.st_value &= ~1ULL; /* the low bit says Thumb */
	symbol.st_value += t->bias;
	for (size_t i = 0; i < s->n_segments; i++) {
		const struct resolve_segment *at = &s->segments[i];
		uint64_t into = symbol.st_value - at->address;

		if (symbol.st_value < at->address || into >= at->bytes)
			continue;
		return push(s,
			    (struct resolve_symbol){
				    .start = symbol.st_value,
				    .bytes = symbol.st_size ? MIN(symbol.st_size, at->bytes - into)
							    : at->bytes - into,
				    .name = name,
				    .rank = rank_of(&symbol, name),
				    .open = symbol.st_size == 0,
			    });
	}
	return 0;
}

/* Takes the symbols of a file's tables of one type. 1: there were some; 0; -errno. */
static int take_table(struct resolve_symbols *s, Elf *elf, uint32_t type, uint64_t base)
{
	struct table t = { .elf = elf, .bias = base - resolve_symbols_base(elf) };
	int r = 0;

	for (Elf_Scn *scn = elf_nextscn(elf, NULL); r == 0 && scn; scn = elf_nextscn(elf, scn)) {
		size_t n;

		if (!gelf_getshdr(scn, &t.header) || t.header.sh_type != type ||
		    !t.header.sh_entsize)
			continue;
		t.data = elf_getdata(scn, NULL);
		n = t.data ? t.data->d_size / t.header.sh_entsize : 0;
		if (n > RESOLVE_SYMBOLS_MAX)
			return -EFBIG;
		for (size_t i = 0; r == 0 && i < n; i++) {
			GElf_Sym symbol;

			if (gelf_getsym(t.data, (int)i, &symbol))
				r = take_symbol(s, &t, symbol);
		}
		return r < 0 ? r : n > 0;
	}
	return r;
}

static Elf_Data *find_section(Elf *elf, const char *wanted)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(scn, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && !strcmp(name, wanted))
			return elf_rawdata(scn, NULL);
	}
	return NULL;
}

/* A symbol table within the file, compressed: Fedora and its kin leave one in stripped files. */
static int take_unpacked(struct resolve_symbols *s, Elf *elf, uint64_t base)
{
	Elf_Data *packed = find_section(elf, ".gnu_debugdata");
	uint64_t memory = UNPACK_MEMORY_BYTES;
	size_t in = 0, out = 0;

	if (!packed || s->unpacked)
		return 0;
	s->unpacked = malloc(RESOLVE_UNPACKED_MAX);
	if (!s->unpacked)
		return -ENOMEM;
	if (lzma_stream_buffer_decode(&memory, 0, NULL, packed->d_buf, &in, packed->d_size,
				      s->unpacked, &out, RESOLVE_UNPACKED_MAX) != LZMA_OK)
		return 0;
	s->inner = elf_memory(s->unpacked, out);
	return s->inner ? take_table(s, s->inner, SHT_SYMTAB, base) : 0;
}

/* Notes where the stubs of the procedure linkage table are. */
static void find_stubs(struct resolve_symbols *s, Elf *elf)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return;
	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn && s->n_stubs < RESOLVE_STUBS_MAX;
	     scn = elf_nextscn(elf, scn)) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(scn, &header) || !(header.sh_flags & SHF_EXECINSTR))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && !strncmp(name, ".plt", 4))
			s->stubs[s->n_stubs++] = (struct resolve_segment){
				.address = header.sh_addr,
				.bytes = header.sh_size,
			};
	}
}

/* How far a function without a size may reach: to the stubs behind it, which have no symbols. */
static uint64_t reach_of(const struct resolve_symbols *s, const struct resolve_symbol *symbol)
{
	uint64_t bytes = symbol->bytes;

	for (size_t i = 0; i < s->n_stubs; i++)
		if (s->stubs[i].address > symbol->start)
			bytes = MIN(bytes, s->stubs[i].address - symbol->start);
	return bytes;
}

static int by_address(const void *a, const void *b)
{
	const struct resolve_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* Keeps one symbol per address and no label inside a function; then ends the open ones. */
static void keep_best(struct resolve_symbols *s)
{
	struct resolve_symbol *all = s->symbols;
	uint64_t reach = 0; /* where the sized symbols so far end */
	size_t kept = 0;

	for (size_t i = 0, next; i < s->count; i = next) {
		size_t best = i;

		for (next = i + 1; next < s->count && all[next].start == all[i].start; next++)
			if (all[next].rank > all[best].rank)
				best = next;
		if (all[best].open && all[best].start < reach)
			continue;
		if (!all[best].open)
			reach = MAX(reach, all[best].start + all[best].bytes);
		all[kept++] = all[best];
	}
	s->count = kept;
	for (size_t i = 0; i < kept; i++) {
		if (all[i].open && i + 1 < kept)
			all[i].bytes = MIN(all[i].bytes, all[i + 1].start - all[i].start);
		if (all[i].open)
			all[i].bytes = reach_of(s, &all[i]);
	}
}

int resolve_symbols_read(struct resolve_symbols *s, Elf *code, Elf *debug)
{
	uint64_t base = resolve_symbols_base(code ? code : debug);
	int r = code ? take_table(s, code, SHT_SYMTAB, base) : 0;

	if (r == 0 && debug)
		r = take_table(s, debug, SHT_SYMTAB, base);
	if (r == 0 && code)
		r = take_unpacked(s, code, base);
	if (r >= 0 && code)
		r = take_table(s, code, SHT_DYNSYM, base);
	if (r < 0)
		return r;
	find_stubs(s, code ? code : debug);
	if (s->count)
		qsort(s->symbols, s->count, sizeof(*s->symbols), by_address);
	keep_best(s);
	return 0;
}

void resolve_symbols_done(struct resolve_symbols *s)
{
	if (s->inner)
		elf_end(s->inner);
	free(s->unpacked);
	free(s->symbols);
	*s = (struct resolve_symbols){ 0 };
}

const char *resolve_symbols_find(const struct resolve_symbols *s, uint64_t address)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->symbols[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 1; back <= RESOLVE_NESTED_MAX + 1 && back <= low; back++) {
		const struct resolve_symbol *symbol = &s->symbols[low - back];

		if (address - symbol->start < symbol->bytes)
			return symbol->name;
	}
	return NULL;
}
