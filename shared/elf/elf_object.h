/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_object.h: names the variables at addresses of a process that has an ELF file mapped: by the
 * symbols of type STT_OBJECT of .symtab and .dynsym. Reads as elf_reader.h does, symbols in parts,
 * at most ELF_OBJECT_SYMBOLS_MAX of each table. Keeps nothing. Fuzzed
 * (tests/fuzz/shared/elf/elf.c).
 */
#ifndef TROCAR_SHARED_ELF_ELF_OBJECT_H
#define TROCAR_SHARED_ELF_ELF_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/elf/build_id.h"
#include "shared/elf/elf_reader.h"

#define ELF_OBJECT_SYMBOLS_MAX 8000000u
#define ELF_OBJECT_NAME_BYTES  256 /* NUL included; a longer name is cut */

/*
 * An address, and one place where the process has mapped code of the file, from which the other
 * mappings follow.
 */
struct elf_object {
	uint64_t address;
	uint64_t code_address,
		code_offset; /* the byte at that file offset is mapped at code_address */
	/* ---- the answer */
	bool within;			  /* the address is in a writable segment of the file */
	char name[ELF_OBJECT_NAME_BYTES]; /* of the smallest variable there; "": none has a name */
	uint64_t offset;		  /* of the address in that variable */
	/* Private. */
	uint64_t target, bytes;
};

/* Properties of the file. */
struct elf_object_file {
	struct build_id id;
	bool stripped; /* the file has no .symtab */
	bool cut;      /* a table has more symbols than were read */
};

/*
 * Fills in the answers for `n` addresses. 0; errors of elf_reader_open and elf_reader_sections;
 * -errno of pread(2). A broken symbol table gives no names.
 */
int elf_object_find(const struct elf_image *image, struct elf_object *objects, size_t n,
		    struct elf_object_file *ret_file);

#endif
