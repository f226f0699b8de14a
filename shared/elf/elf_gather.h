/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_gather.h: what is gathered while the names of one file are read, from however many sources:
 * its own tables, a debug file, its procedure linkage table, Go's line table. All strings lie in
 * one buffer, all entries in one list, both under the walls below. Addresses become file offsets by
 * the segments of `file`, whatever file the symbols come from.
 */
#ifndef TROCAR_SHARED_ELF_ELF_GATHER_H
#define TROCAR_SHARED_ELF_ELF_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "shared/elf/elf_reader.h"
#include "shared/elf/name_table.h"

/* What the agent reads of a file. */
#define ELF_STRINGS_MAX (64ULL << 20)
#define ELF_SYMBOLS_MAX 1000000u

struct elf_limits {
	size_t string_bytes; /* of all string tables, and of the names that are kept */
	size_t symbols;	     /* entries of all symbol tables, functions or not */
};

struct elf_gather {
	struct elf_limits limits;
	struct elf_reader file;
	char *strings; /* owned; string tables and names, each with a NUL behind it */
	size_t string_bytes, string_space;
	struct name_table_entry *entries; /* owned */
	size_t entry_count, entry_space;
	uint64_t symbol_count;	/* looked at, functions or not */
	const Elf64_Phdr *code; /* of `file`: where the last function lies; NULL: nowhere */
};

/* What stands in a gather now, to go back to when a source turns out to be broken. */
struct elf_gather_mark {
	size_t string_bytes, entry_count;
	uint64_t symbol_count;
};

/* A function to be taken: bytes of its code from virtual address `address` on; 0: not known. */
struct elf_function {
	uint64_t address, bytes;
	size_t text;   /* of its name, in the strings */
	uint16_t rank; /* as name_table_rank */
};

/* Releases all, also `file`. An empty (zeroed) one suffers it too. */
void elf_gather_done(struct elf_gather *g);

struct elf_gather_mark elf_gather_mark(const struct elf_gather *g);
void elf_gather_rewind(struct elf_gather *g, struct elf_gather_mark mark);

/* Appends `bytes` bytes and a NUL; *ret_at is where they begin. 0, -EFBIG, -ENOMEM. */
int elf_gather_text(struct elf_gather *g, const void *text, size_t bytes, size_t *ret_at);

/* Appends the section's bytes and a NUL. 0, -EBADMSG, -EFBIG, -ENOMEM, -errno of pread(2). */
int elf_gather_section(struct elf_gather *g, const struct elf_reader *from, const Elf64_Shdr *s,
		       size_t *ret_at);

/* Takes a function when the file has code at its address. 0; -EFBIG; -ENOMEM. */
int elf_gather_push(struct elf_gather *g, const struct elf_function *function);

/*
 * Takes the functions of symbol table `s` of `from`, which is `file` itself or one with the
 * symbols of the same build. Errors as elf_symbols_read.
 */
int elf_gather_symbols(struct elf_gather *g, const struct elf_reader *from, const Elf64_Shdr *s);

#endif
