/* SPDX-License-Identifier: BSD-2-Clause */
/* Foreign ELF files in which the symbols of a language runtime are looked up. */
#include <stdint.h>

#include "consumer/runtimes/runtime_symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct elf_image image = { .fd = -1, .memory = data, .bytes = bytes };
	struct runtime_symbols symbols;
	struct elf_reader e;

	if (elf_reader_open(&image, &e) == 0 && runtime_symbols_read(&e, &symbols) &&
	    !symbols.indices[RUNTIME_SYMBOL_STATE])
		__builtin_trap();
	elf_reader_done(&e);
	return 0;
}
