/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * code_files.h: reads facts about code from mapped files: the entry point of the program, the
 * runtime in the file, and the bytes of instructions. A name alone proves none of these. Files are
 * opened on first use and stay open for one session. Report thread only; the files are untrusted.
 */
#ifndef TROCAR_CONSUMER_NAMING_CODE_FILES_H
#define TROCAR_CONSUMER_NAMING_CODE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/symbols/symbols.h"
#include "shared/elf/elf_reader.h"

#define CODE_FILES_MAX	   16	      /* open at once; the oldest one is closed for another */
#define CODE_FILES_NOWHERE UINT64_MAX /* an offset that no file has */

/* The kind of a file, by its content: DT_SONAME, section names and program headers. */
enum code_runtime {
	CODE_OTHER,
	CODE_C_LIBRARY, /* glibc's libc, libpthread or ld.so, or musl's libc */
	CODE_STATIC,	/* an executable that loads no library: the C library is part of it */
	CODE_GO,	/* has Go's table of functions */
	CODE_GCCGO,	/* has export data of gccgo's packages, or is its libgo */
};

struct code_file {
	const struct module *module; /* NULL: a free slot */
	struct elf_image image;	     /* fd -1: the file could not be opened */
	uint64_t entry; /* offset of the entry point (e_entry), or CODE_FILES_NOWHERE */
	enum code_runtime runtime;
	bool arm64; /* its instructions are of arm64, else of x86 */
	bool wide;  /* of 64 bits */
};

struct code_files {
	struct symbols *symbols; /* borrowed */
	struct code_file files[CODE_FILES_MAX];
	size_t next; /* next slot to use */
};

/* Initialises without a file. Release with code_files_done before the next symbols_trim. */
void code_files_init(struct code_files *c, struct symbols *symbols);
void code_files_done(struct code_files *c);

/*
 * Returns the facts of the file of `m`, or of the file with its build-id; NULL if it is no file or
 * cannot be opened. Valid until the next call.
 */
const struct code_file *code_files_get(struct code_files *c, const struct module *m);

/* Reads `bytes` bytes of the file from `offset`. Returns false if the file has fewer. */
bool code_files_read(const struct code_file *f, uint64_t offset, void *to, size_t bytes);

#endif
