/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve.h: one file of symbols, and what was split off it, read by libelf and libdw. These map
 * foreign files and believe much of what they say: so it runs in a process of its own (resolver.h),
 * which may crash, and has nothing to lose.
 */
#ifndef TROCAR_CTL_RESOLVE_H
#define TROCAR_CTL_RESOLVE_H

#include "ctl/answer.h"
#include "ctl/resolve_lines.h"
#include "ctl/resolve_symbols.h"

struct resolve {
	Elf *code, *debug; /* one may be NULL */
	struct resolve_symbols symbols;
	struct resolve_lines lines;
	enum unnamed unnamed; /* why it names nothing */
	char name[DEMANGLE_OUT_BYTES];
};

/*
 * Reads the files of two descriptors (-1: none; borrowed, for as long as *r); with `lines` their
 * DWARF too. What is wrong is in every answer. Release with resolve_close.
 */
void resolve_open(struct resolve *r, int code_fd, int debug_fd, bool lines);
void resolve_close(struct resolve *r);

/* What is at an offset of the file. The texts live until the next call. */
void resolve_find(struct resolve *r, uint64_t offset, struct answer *ret_answer);

#endif
