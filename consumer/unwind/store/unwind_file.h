/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_file.h: describes a mapped file for the unwinder: its rows, and the addresses in a process
 * to which they apply.
 */
#ifndef TROCAR_CONSUMER_UNWIND_STORE_UNWIND_FILE_H
#define TROCAR_CONSUMER_UNWIND_STORE_UNWIND_FILE_H

#include <stdbool.h>

#include "consumer/runtimes/runtime_symbols.h"
#include "consumer/symbols/symbols.h"
#include "consumer/unwind/compile/unwind_compile.h"

#define UNWIND_SEGMENTS_MAX 8 /* executable segments kept per file: linkers make one */

/*
 * An executable segment: bytes [offset, offset + bytes) of the file are at address offset + bias.
 */
struct unwind_segment {
	uint64_t offset, bytes, bias;
};

struct unwind_layout {
	struct unwind_segment segments[UNWIND_SEGMENTS_MAX];
	size_t count;
	bool fixed; /* the program runs at the addresses of its file (ET_EXEC) */
	uint8_t build_id[BUILD_ID_BYTES_MAX];
	uint8_t build_id_bytes; /* 0: none */
	uint64_t digest; /* of the sections that rows are made from (elf_digest.h); 0: unknown */
	struct runtime_symbols runtime;
};

/*
 * Whether rows can be compiled for files of `machine` (e_machine) on the machine `own`. 0;
 * -ENOTSUP: no such code runs here natively; -ENOSYS: it runs, but there is no compiler for it.
 */
int unwind_file_machine(uint16_t machine, uint16_t own);

/*
 * Reads the file's segments and its build-id. Errors as build_id_read_mapped; -ENOTSUP (32 bits)
 * and as unwind_file_machine.
 */
int unwind_file_layout(const struct elf_image *image, struct unwind_layout *ret_layout);

/*
 * Computes the address of the file's address 0 in a process that maps the file from `offset` on at
 * `start`. If two segments share a page of the file, the mapping is of the segment that begins
 * there. Returns 0; -ENOENT if no executable segment has the offset; -ENOTUNIQ if two that begin in
 * the same page would give different results.
 */
int unwind_file_bias(const struct unwind_layout *layout, uint64_t start, uint64_t offset,
		     uint64_t *ret_bias);

/*
 * Returns the stable word for the reason that a file has no rows, from the -errno of
 * unwind_file_layout or unwind_compile; -ESTALE: it is not the mapped file.
 */
const char *unwind_file_why(int error);

/*
 * Returns a sentence for people about such a word, or about a word of reasons.def (the file could
 * not be opened); NULL if there is no such word.
 */
const char *unwind_file_help(const char *why);

#endif
