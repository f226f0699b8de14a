/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve_symbols.h: which function holds an address, by libelf. The choice among the names of one
 * address, and the end of functions without a size, are the agent's (shared/elf/name_table.h,
 * elf_gather.c): so a frame has the same name from both. Only the resolver's own process reads
 * files with it.
 */
#ifndef TROCAR_CTL_RESOLVE_SYMBOLS_H
#define TROCAR_CTL_RESOLVE_SYMBOLS_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESOLVE_SEGMENTS_MAX 256
#define RESOLVE_SYMBOLS_MAX  4000000
#define RESOLVE_STUBS_MAX    8		 /* sections of a procedure linkage table */
#define RESOLVE_NESTED_MAX   16		 /* how far back an enclosing symbol is looked for */
#define RESOLVE_UNPACKED_MAX (64u << 20) /* bytes of .gnu_debugdata */

/* Executable parts of the file. */
struct resolve_segment {
	uint64_t offset, address, bytes;
};

struct resolve_symbol {
	uint64_t start, bytes; /* address; with `open` the farthest it may reach */
	const char *name;      /* in the mapped file */
	uint32_t order;	       /* of arrival */
	uint16_t rank, open;
};

struct resolve_symbols {
	struct resolve_segment segments[RESOLVE_SEGMENTS_MAX];
	size_t n_segments;
	struct resolve_segment stubs[RESOLVE_STUBS_MAX]; /* offset: not known */
	size_t n_stubs;
	struct resolve_symbol *symbols;
	size_t count, space;
	void *unpacked; /* .gnu_debugdata as a file */
	Elf *inner;	/* that file */
};

/*
 * Takes the executable segments of a file. With `split` it is what was split off one, whose
 * offsets may be gone: then they are counted anew, as linkers lay segments down: each at the next
 * offset that agrees with its address in the page. 0; -EBADMSG; -ENODATA: they cannot be known.
 */
int resolve_symbols_segments(struct resolve_symbols *s, Elf *elf, bool split);

/* The address of a file offset; false when it lies in no executable segment. */
bool resolve_symbols_address(const struct resolve_symbols *s, uint64_t offset,
			     uint64_t *ret_address);

/*
 * Reads the functions of the file `code`, or of `debug`, which was split off it; either may be
 * NULL, and both live on. 0, -ENOMEM, -EFBIG.
 */
int resolve_symbols_read(struct resolve_symbols *s, Elf *code, Elf *debug);
void resolve_symbols_done(struct resolve_symbols *s);

/*
 * The symbol that holds an address; NULL when none does. A function without a size does not reach
 * into the procedure linkage table behind it, whose stubs have no symbols.
 */
const char *resolve_symbols_find(const struct resolve_symbols *s, uint64_t address);

/* The address of the first loaded segment: what two files of one build differ by. */
uint64_t resolve_symbols_base(Elf *elf);

#endif
