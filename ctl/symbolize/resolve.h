/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve.h: names the function at an offset of one file: the function's name, by the agent's own
 * reader (shared/elf), and its source lines, by libdw. libdw maps foreign files and trusts many of
 * their fields: so this runs in a process of its own (resolver.h), which may crash, and has nothing
 * to lose.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_RESOLVE_H
#define TROCAR_CTL_SYMBOLIZE_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "ctl/symbolize/answer.h"
#include "ctl/symbolize/resolve_lines.h"
#include "shared/elf/elf_reader.h"
#include "shared/elf/elf_symbols.h"

/* More than the agent reads of a file: this process ends with it, and has memory of its own. */
#define RESOLVE_STRINGS_MAX (512u << 20) /* bytes */
#define RESOLVE_SYMBOLS_MAX NAME_TABLE_COUNT_MAX

/* Not to be moved while it is open: `layout` points into it. */
struct resolve {
	struct elf_image code, debug; /* fd -1: there is none, or it is no sound ELF file */
	struct elf_reader layout; /* of the code, or of the debug file where only that is there */
	struct elf_symbols *symbols; /* NULL: none */
	struct resolve_lines lines;
	enum unnamed unnamed; /* why it names nothing */
	char name[DEMANGLE_OUT_BYTES];
};

/*
 * Reads the files of two descriptors (-1: none; borrowed, for as long as *r): the program or
 * library, and the debug file that was split off it. With `lines` their DWARF too. What is wrong is
 * in every answer. Release with resolve_close.
 */
void resolve_open(struct resolve *r, int code_fd, int debug_fd, bool lines);
void resolve_close(struct resolve *r);

/* What is at a place of the file. The texts live until the next call. */
void resolve_find(struct resolve *r, struct answer_question place, struct answer *ret_answer);

#endif
