/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/resolve_lines.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/array.h"
#include "shared/tools/macro.h"

static int push_range(struct resolve_ranges *r, uint64_t low, uint64_t high, uint64_t of)
{
	if (low >= high)
		return 0;
	if (r->count == RESOLVE_LINES_RANGES_MAX)
		return -EFBIG;
	if (array_reserve(&r->rows, &r->space, r->count + 1, sizeof(*r->rows)) < 0)
		return -ENOMEM;
	r->rows[r->count++] = (struct resolve_range){ .low = low, .high = high, .of = of };
	return 0;
}

/* Adds the addresses of a unit, a function or an inlined function. */
static int push_ranges(struct resolve_ranges *r, Dwarf_Die *die, uint64_t of)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;
	int e = 0;

	while (e == 0 && (at = dwarf_ranges(die, at, &base, &low, &high)) > 0)
		e = push_range(r, low, high, of);
	return e;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct resolve_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (x->high > y->high) - (x->high < y->high);
}

/* Returns the innermost range that contains the address; NULL if there is none. */
static const struct resolve_range *find_range(const struct resolve_ranges *r, uint64_t address)
{
	size_t after = LOWER_BOUND(i, 0, r->count, r->rows[i].low <= address);

	for (size_t back = 1; back <= 16 && back <= after; back++)
		if (address < r->rows[after - back].high)
			return &r->rows[after - back];
	return NULL;
}

static void sort_ranges(struct resolve_ranges *r)
{
	array_sort(r->rows, r->count, sizeof(*r->rows), compare_ranges);
}

static int push_unit(struct resolve_lines *l, Dwarf_Die *die)
{
	if (array_reserve(&l->units, &l->units_space, l->n_units + 1, sizeof(*l->units)) < 0)
		return -ENOMEM;
	l->units[l->n_units] = (struct resolve_unit){ .die = dwarf_dieoffset(die) };
	return push_ranges(&l->ranges, die, l->n_units++);
}

/*
 * Opens the file for libelf. libelf maps it: if the file shrinks in the meantime, a SIGBUS ends
 * this process.
 */
static Elf *open_elf(int fd)
{
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		return elf;
	elf_end(elf);
	return NULL;
}

/* As elf_reader_base. */
static uint64_t find_base(Elf *elf)
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

int resolve_lines_open(struct resolve_lines *l, int fd, uint64_t base)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die, split;
	uint8_t type;
	int r = 0;

	*l = (struct resolve_lines){ .elf = open_elf(fd) };
	if (!l->elf)
		return 0;
	l->bias = base - find_base(l->elf);
	l->dwarf = dwarf_begin_elf(l->elf, DWARF_C_READ, NULL);
	if (!l->dwarf)
		return 0;
	while (r == 0 && dwarf_get_units(l->dwarf, unit, &unit, NULL, &type, &die, &split) == 0)
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			r = push_unit(l, &die);
	sort_ranges(&l->ranges);
	return r;
}

void resolve_lines_done(struct resolve_lines *l)
{
	if (l->dwarf)
		dwarf_end(l->dwarf);
	elf_end(l->elf);
	for (size_t i = 0; i < l->n_units; i++)
		free(l->units[i].functions.rows);
	free(l->units);
	free(l->ranges.rows);
	*l = (struct resolve_lines){ 0 };
}

static bool holds_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_enumeration_type;
}

/* Adds the functions below a unit or a namespace. Recursion is bounded by `depth`. */
static int push_functions(struct resolve_ranges *r, Dwarf_Die *parent, unsigned int depth)
{
	Dwarf_Die die;
	int e = 0;

	if (!depth || dwarf_child(parent, &die) != 0)
		return 0;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			e = push_ranges(r, &die, dwarf_dieoffset(&die));
		else if (holds_functions(tag))
			e = push_functions(r, &die, depth - 1);
	} while (e == 0 && dwarf_siblingof(&die, &die) == 0);
	return e;
}

/* Finds the function of the unit that contains the address; false if there is none. */
static bool find_function(struct resolve_lines *l, struct resolve_unit *unit, Dwarf_Die *die,
			  uint64_t address, Dwarf_Die *ret_function)
{
	const struct resolve_range *found;

	if (!unit->gathered && l->functions < RESOLVE_LINES_RANGES_MAX) {
		/* On failure some functions are missing, and have no inlined functions. */
		(void)push_functions(&unit->functions, die, RESOLVE_LINES_DEPTH);
		sort_ranges(&unit->functions);
		l->functions += unit->functions.count;
		unit->gathered = true;
	}
	found = find_range(&unit->functions, address);
	return found && dwarf_offdie(l->dwarf, found->of, ret_function);
}

/* Returns its source name, in `text`; or NULL. */
static const char *find_name(Dwarf_Die *die, char text[DEMANGLE_OUT_BYTES])
{
	Dwarf_Attribute attribute;
	const char *raw = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		raw = dwarf_formstring(&attribute);
	if (raw && demangle(raw, text))
		return text;
	return raw ? raw : dwarf_diename(die);
}

/* Returns a number attribute of the DIE, 0 without it. */
static Dwarf_Word read_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number = 0;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &number) != 0)
		return 0;
	return number;
}

static void set_line(struct answer_place *place, const char *file, Dwarf_Word line)
{
	if (!file || !line || line > INT32_MAX)
		return;
	place->file = file;
	place->line = (uint32_t)line;
}

/* Sets the place where the inlined function `die` was called. */
static void set_call(Dwarf_Die *unit, Dwarf_Die *die, struct answer_place *place)
{
	Dwarf_Files *files;
	size_t n;

	if (dwarf_getsrcfiles(unit, &files, &n) == 0)
		set_line(place, dwarf_filesrc(files, read_number(die, DW_AT_call_file), NULL, NULL),
			 read_number(die, DW_AT_call_line));
}

/*
 * Finds the scope below `parent` that contains the address; a scope without a range contains none.
 */
static bool find_inner_scope(Dwarf_Die *parent, uint64_t address, Dwarf_Die *ret_die)
{
	Dwarf_Die die;

	if (dwarf_child(parent, &die) != 0)
		return false;
	do {
		int tag = dwarf_tag(&die);

		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
		    dwarf_haspc(&die, address) > 0) {
			*ret_die = die;
			return true;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/*
 * Appends the inlined functions at the address, outermost first; each is called by the previous
 * one. False if there are more: then the line of the last one is known from the next call.
 */
static bool push_inlined(struct resolve_lines *l, Dwarf_Die *unit, Dwarf_Die scope,
			 uint64_t address, struct answer *answer)
{
	for (int depth = 0; depth < RESOLVE_LINES_DEPTH; depth++) {
		if (!find_inner_scope(&scope, address, &scope))
			return true;
		if (dwarf_tag(&scope) != DW_TAG_inlined_subroutine)
			continue;
		set_call(unit, &scope, &answer->places[answer->n - 1]);
		if (answer->n == ANSWER_PLACES)
			return false;
		answer->places[answer->n].fn = find_name(&scope, l->names[answer->n - 1]);
		answer->n++;
	}
	return false;
}

/* Orders the inlined functions innermost first, after the function. */
static void reverse_inlined(struct answer *answer)
{
	for (unsigned int i = 1, j = answer->n - 1; i < j; i++, j--) {
		struct answer_place place = answer->places[i];

		answer->places[i] = answer->places[j];
		answer->places[j] = place;
	}
}

void resolve_lines_find(struct resolve_lines *l, uint64_t address, struct answer *answer)
{
	const struct resolve_range *found;
	Dwarf_Die unit, function;
	bool whole = true;
	Dwarf_Line *line;
	int number;

	address -= l->bias;
	found = find_range(&l->ranges, address);
	if (!found || !dwarf_offdie(l->dwarf, l->units[found->of].die, &unit))
		return;
	if (find_function(l, &l->units[found->of], &unit, address, &function))
		whole = push_inlined(l, &unit, function, address, answer);
	line = whole ? dwarf_getsrc_die(&unit, address) : NULL;
	if (line && dwarf_lineno(line, &number) == 0 && number > 0)
		set_line(&answer->places[answer->n - 1], dwarf_linesrc(line, NULL, NULL),
			 (Dwarf_Word)number);
	reverse_inlined(answer);
}
