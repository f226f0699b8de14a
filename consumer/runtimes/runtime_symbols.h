/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runtime_symbols.h: finds in a foreign ELF file the symbols of a language runtime that the kernel
 * side wants to be named (shared/abi/runtime_abi.h), by the file's hash table of symbols
 * (.gnu.hash). The result is a claim, which the kernel side checks. Pure but for pread(2).
 */
#ifndef TROCAR_CONSUMER_RUNTIMES_RUNTIME_SYMBOLS_H
#define TROCAR_CONSUMER_RUNTIMES_RUNTIME_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/abi/runtime_abi.h"
#include "shared/elf/elf_reader.h"

/* All zeros: the file is no runtime. */
struct runtime_symbols {
	uint32_t indices[RUNTIME_SYMBOLS]; /* in the table of dynamic symbols; 0: none */
	uint64_t first; /* address of the file's first byte, as the file counts addresses */
};

/*
 * Reads the symbols from `e`, an open file of 64 bits. Returns false, with *ret_symbols all zeros,
 * if it lacks one of the symbols that all versions have, or cannot be read.
 */
bool runtime_symbols_read(struct elf_reader *e, struct runtime_symbols *ret_symbols);

#endif
