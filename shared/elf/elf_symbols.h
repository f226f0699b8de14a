/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_symbols.h: the function names and the build-id of one ELF file, from every source that the
 * file has or names. Read as elf_reader.h says; no loop runs longer than the walls allow. Memory
 * while reading: at most the strings, the kept names and 32 bytes per symbol. Fuzzed
 * (tests/fuzz/shared/elf/elf.c).
 */
#ifndef TROCAR_SHARED_ELF_ELF_SYMBOLS_H
#define TROCAR_SHARED_ELF_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/elf/build_id.h"
#include "shared/elf/elf_gather.h"
#include "shared/elf/elf_reader.h"
#include "shared/elf/name_table.h"

#define ELF_DEBUGLINK_MAX 256 /* bytes of a debug file's name, NUL included */

/* What a file says about where the symbols are that were split off it. */
struct elf_links {
	struct build_id id;
	char debuglink[ELF_DEBUGLINK_MAX]; /* a name without "/"; "" when there is none */
	uint32_t crc;			   /* of the file that debuglink names */
};

/*
 * Opens the debug file of a stripped one, checked to be of the same build; image.fd is the
 * caller's to close. 0 or -errno. Called for files without .symtab only.
 */
struct elf_finder {
	int (*open)(void *context, const struct elf_links *links, struct elf_image *ret_image);
	void *context;
};

/* How a file is read; what is zero is as the agent reads it. */
struct elf_symbols_options {
	const struct elf_finder *finder; /* asked for a debug file; NULL: nobody is */
	const struct elf_image *debug;	 /* the debug file, when the caller has it open; borrowed */
	const struct elf_limits *limits; /* NULL: ELF_STRINGS_MAX and ELF_SYMBOLS_MAX */
	bool split; /* the file is itself a debug file: its offsets are those of elf_layout.h */
};

struct elf_symbols {
	struct name_table names; /* keys are file offsets */
	struct build_id id;	 /* of the mapped notes; none with options.split */
};

/*
 * Reads functions from all name sources, and the build-id. A file without symbols gives an empty
 * table. `options` NULL: nothing but the file. What is broken beyond the headers, .symtab and
 * .dynsym is passed over. Errors as elf_reader_open; -EFBIG also when a limit is exceeded; -ENODATA
 * as elf_layout_restore. Release with elf_symbols_free.
 */
int elf_symbols_read(const struct elf_image *image, const struct elf_symbols_options *options,
		     struct elf_symbols **ret_symbols);
void elf_symbols_free(struct elf_symbols *s);

/* The function that holds file offset `offset`, *ret_start its own offset; NULL when none does. */
const char *elf_symbols_find(const struct elf_symbols *s, uint64_t offset, uint64_t *ret_start);

/* Bytes of heap. */
size_t elf_symbols_bytes(const struct elf_symbols *s);

#endif
