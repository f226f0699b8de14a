/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve_lines.h: finds the source line of an address, and the functions inlined there, by libdw.
 * The tables that map an address to its unit and function are our own: libdw needs the section
 * .debug_aranges for that, which clang and rustc do not write. Only the resolver's process reads
 * files with this code.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_RESOLVE_LINES_H
#define TROCAR_CTL_SYMBOLIZE_RESOLVE_LINES_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/symbolize/answer.h"
#include "shared/tools/demangle.h"

#define RESOLVE_LINES_RANGES_MAX 8000000 /* of all units, or of all functions of the used units */
#define RESOLVE_LINES_DEPTH	 64	 /* of namespaces and scopes */

/* Addresses of a unit, `of` its number, or of a function, `of` its DIE's offset in the file. */
struct resolve_range {
	uint64_t low, high, of;
};

struct resolve_ranges {
	struct resolve_range *rows;
	size_t count, space;
};

struct resolve_unit {
	Dwarf_Off die;
	struct resolve_ranges functions; /* gathered at the first use */
	bool gathered;
};

struct resolve_lines {
	Elf *elf;     /* NULL: no file is open */
	Dwarf *dwarf; /* NULL: the file has none */
	struct resolve_unit *units;
	size_t n_units, units_space;
	struct resolve_ranges ranges; /* of all units */
	size_t functions;	      /* of all units */
	uint64_t bias;		      /* address in the code minus address in this file */
	char names[ANSWER_INLINED][DEMANGLE_OUT_BYTES]; /* of the last answer */
};

/*
 * Opens the DWARF of the file `fd`, which is borrowed until resolve_lines_done; `base` is the
 * address of the first loaded segment of the code. Without DWARF later lookups find nothing. 0,
 * -ENOMEM, -EFBIG.
 */
int resolve_lines_open(struct resolve_lines *l, int fd, uint64_t base);
void resolve_lines_done(struct resolve_lines *l);

/*
 * Fills the places' files and lines for an address: places[0] is the function itself, and its name
 * stays as it is; the inlined functions follow. The texts are valid until the next call.
 */
void resolve_lines_find(struct resolve_lines *l, uint64_t address, struct answer *answer);

#endif
