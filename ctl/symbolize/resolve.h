/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve.h: finds the function at an offset of one file: its name, by the agent's own reader
 * (shared/elf), and its source lines, by libdw. libdw maps foreign files and trusts many of their
 * fields. So this code runs in a separate process (resolver.h), which may crash and has no
 * privileges.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_RESOLVE_H
#define TROCAR_CTL_SYMBOLIZE_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "ctl/symbolize/answer.h"
#include "ctl/symbolize/resolve_lines.h"
#include "shared/elf/elf_reader.h"
#include "shared/elf/elf_symbols.h"

/* Larger limits than the agent's: this process ends after the file, and has its own memory. */
#define RESOLVE_STRINGS_MAX (512u << 20) /* bytes */
#define RESOLVE_SYMBOLS_MAX NAME_TABLE_COUNT_MAX

/* Must not be moved while it is open: `layout` points into it. */
struct resolve {
	struct elf_image code, debug; /* fd -1: no file, or not a valid ELF file */
	struct elf_reader layout;     /* of the code, or of the debug file if there is only that */
	struct elf_symbols *symbols;  /* NULL: none */
	struct resolve_lines lines;
	enum unnamed unnamed; /* why there are no names */
	char name[DEMANGLE_OUT_BYTES];
};

/*
 * Reads the files of two descriptors (-1: none; borrowed until resolve_close): the program or
 * library, and the debug file that was split off it. With `lines` also reads their DWARF. An error
 * is part of every answer. Release with resolve_close.
 */
void resolve_open(struct resolve *r, int code_fd, int debug_fd, bool lines);
void resolve_close(struct resolve *r);

/* Resolves a place of the file. The texts are valid until the next call. */
void resolve_find(struct resolve *r, struct answer_question place, struct answer *ret_answer);

#endif
