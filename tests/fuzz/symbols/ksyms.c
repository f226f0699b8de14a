/* SPDX-License-Identifier: BSD-2-Clause */
/* ksyms.c: any bytes as records of the `ksyms` iterator. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "consumer/symbols/kernel_symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct kernel_symbols *k;

	if (kernel_symbols_parse(data, bytes, &k) < 0)
		return 0;
	for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
		const char *module = NULL, *name;
		uint64_t address, start = 0;

		memcpy(&address, data + at, sizeof(address));
		name = kernel_symbols_find(k, address, &start, &module);
		assert(!name || (strlen(name) < KERNEL_NAME_BYTES &&
				 strlen(module) < KERNEL_MODULE_BYTES && start <= address));
	}
	kernel_symbols_free(k);
	return 0;
}
