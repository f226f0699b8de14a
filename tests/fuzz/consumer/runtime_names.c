/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the ring `runtime_names`: names, files and line tables of foreign code objects. Every
 * instruction of a code object gets a line or none.
 */
#include <stdint.h>
#include <string.h>

#include "consumer/runtimes/code_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct runtime_name record = { 0 };
	struct code_place place;
	struct code_names names;
	size_t used = bytes < sizeof(record) ? bytes : sizeof(record);

	memcpy(&record, data, used);
	code_names_init(&names);
	code_names_add(&names, &record, used);
	for (uint32_t at = 0; at < 4096; at += 7)
		if (code_names_find(&names, RUNTIME_WORD(record.number, at, 0), &place) &&
		    (place.line < 0 || !memchr(place.fn, 0, 4 * RUNTIME_NAME_BYTES + 8)))
			__builtin_trap();
	code_names_done(&names);
	return 0;
}
