/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_gather.h: collects the names of one file from all sources: its own symbol tables, a debug
 * file, its procedure linkage table, Go's line table. All strings are in one buffer and all entries
 * in one list, both with the limits below. Addresses become file offsets by the segments of `file`,
 * also for symbols of another file.
 */
#ifndef TROCAR_SHARED_ELF_ELF_GATHER_H
#define TROCAR_SHARED_ELF_ELF_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/elf/elf_reader.h"
#include "shared/elf/name_table.h"

/* The agent's limits. */
#define ELF_STRINGS_MAX (64ULL << 20)
#define ELF_SYMBOLS_MAX 1000000u

/*
 * Symbols of a table that are read per function that may be kept: most symbols of a large program
 * are not functions.
 */
#define ELF_SYMBOLS_PER_FUNCTION 8u

struct elf_limits {
	size_t string_bytes; /* of all string tables, and of the names that are kept */
	size_t symbols;	     /* functions of all symbol tables */
};

struct elf_gather {
	struct elf_limits limits;
	struct elf_reader file;
	char *strings; /* owned; string tables and names, each with a NUL after it */
	size_t string_bytes, string_space;
	struct name_table_entry *entries; /* owned */
	size_t entry_count, entry_space;
	uint64_t symbol_count;	/* read so far, functions or not */
	bool cut;		/* a limit has left functions out */
	bool local;		/* local functions are among the entries: a whole symbol table */
	const Elf64_Phdr *code; /* of `file`: segment of the last function; NULL: none */
};

/* The state of a gather, to which a rewind returns when a source turns out to be broken. */
struct elf_gather_mark {
	size_t string_bytes, entry_count;
	uint64_t symbol_count;
	bool cut, local;
};

/* A function to add; `bytes` of code from virtual address `address` on, 0: not known. */
struct elf_function {
	uint64_t address, bytes;
	uint64_t most; /* without `bytes`: the latest end; 0: the end of its segment */
	size_t text;   /* of its name, in the strings */
	uint16_t rank; /* see name_table_rank */
};

/* Frees everything, `file` included. Accepts a zeroed struct. */
void elf_gather_done(struct elf_gather *g);

struct elf_gather_mark elf_gather_mark(const struct elf_gather *g);
void elf_gather_rewind(struct elf_gather *g, struct elf_gather_mark mark);

/* Appends `bytes` bytes and a NUL; *ret_at is where they begin. Returns 0, -EFBIG or -ENOMEM. */
int elf_gather_text(struct elf_gather *g, const void *text, size_t bytes, size_t *ret_at);

/*
 * Appends the section's bytes and a NUL. Returns 0, -EBADMSG, -EFBIG, -ENOMEM, or -errno of
 * pread(2).
 */
int elf_gather_section(struct elf_gather *g, const struct elf_reader *from, const Elf64_Shdr *s,
		       size_t *ret_at);

/*
 * Adds a function if the file has code at its address. Returns 0, also when its offset in the file
 * is no 32-bit number (g->cut is then set); -EFBIG or -ENOMEM.
 */
int elf_gather_push(struct elf_gather *g, const struct elf_function *function);

/*
 * Adds the functions of symbol table `s` of `from`, which is `file` itself or a file of the same
 * build. If the table exceeds the limits, it adds as many functions as fit, less an eighth for the
 * sources that follow, and sets g->cut. It then adds no function without a known end, because the
 * next function may be missing. Errors as elf_symbols_read.
 */
int elf_gather_symbols(struct elf_gather *g, const struct elf_reader *from, const Elf64_Shdr *s);

#endif
