/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_symbols.h: reads the function names and the build-id of one ELF file, from every source in
 * the file, and from its debug file. Reads as elf_reader.h does; the limits bound every loop.
 * Memory while reading: at most the strings, the kept names, and 32 bytes per symbol. Fuzzed
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

#define ELF_DEBUGLINK_MAX 256 /* of a debug file's name, NUL included */

/* A file's reference to its debug file, if its symbols were split off. */
struct elf_links {
	struct build_id id;
	char debuglink[ELF_DEBUGLINK_MAX]; /* a name without "/"; "": none */
	uint32_t crc;			   /* of the file that debuglink names */
};

/*
 * Opens the debug file of a stripped file and checks that it is of the same build; the caller
 * closes image.fd. Returns 0 or -errno. Called only for files without .symtab.
 */
struct elf_finder {
	int (*open)(void *context, const struct elf_links *links, struct elf_image *ret_image);
	void *context;
};

/* How to read a file. Zero is the agent's way. */
struct elf_symbols_options {
	const struct elf_finder *finder; /* opens a debug file; NULL: no debug file is opened */
	const struct elf_image *debug;	 /* the debug file, if the caller has it open; borrowed */
	const struct elf_limits *limits; /* NULL: ELF_STRINGS_MAX and ELF_SYMBOLS_MAX */
	bool split; /* the file is itself a debug file: see elf_layout.h for its offsets */
};

struct elf_symbols {
	struct name_table names; /* keys are file offsets */
	struct build_id id;	 /* from the mapped notes; none with options.split */
	bool cut;		 /* a limit has left functions out */
	bool whole;		 /* a full symbol table was read, from the file or a debug file */
	struct elf_links links;	 /* refers to its debug file */
};

/*
 * Reads functions from all name sources, and the build-id. A file without symbols gives an empty
 * table. `options` NULL: reads nothing but the file. Skips broken sources other than the headers,
 * .symtab and .dynsym. Beyond a limit it reads the part that fits, and sets `cut`. Errors of
 * elf_reader_open; -EFBIG also when the kept names exceed the limit, because many symbols share one
 * long name; -ENODATA of elf_layout_restore. Release with elf_symbols_free.
 */
int elf_symbols_read(const struct elf_image *image, const struct elf_symbols_options *options,
		     struct elf_symbols **ret_symbols);
void elf_symbols_free(struct elf_symbols *s);

/* Returns the first function that begins after file offset `offset`; NULL when none does. */
const char *elf_symbols_after(const struct elf_symbols *s, uint64_t offset);

/*
 * Returns the function that contains file offset `offset`, with *ret_start its own offset; NULL
 * when none does.
 */
const char *elf_symbols_find(const struct elf_symbols *s, uint64_t offset, uint64_t *ret_start);

/* Reads the code of a file: whether a call may end at a file offset, as elf_call_ends_at. */
struct elf_code {
	bool (*has_call)(void *context, uint64_t offset);
	void *context;
};

/*
 * As elf_symbols_find, for return address `offset`: the call is before it, and may be its
 * function's last instruction. `code` is called only for the first byte of a function: if no call
 * ends there, the function is entered at that byte, as the code that ends a signal handler is.
 */
const char *elf_symbols_find_caller(const struct elf_symbols *s, uint64_t offset,
				    const struct elf_code *code, uint64_t *ret_start);

/* Returns the heap bytes in use by `s`. */
size_t elf_symbols_bytes(const struct elf_symbols *s);

#endif
