/* SPDX-License-Identifier: BSD-2-Clause */
/* jit.c: any bytes as a perf map; what is found lies within its entry and ends with a NUL. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "consumer/jit/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct jit_map *map;

	if (perf_map_parse((const char *)data, bytes, bytes / 2, &map) < 0)
		return 0;
	for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
		uint64_t address, start = 0;
		const char *name;

		memcpy(&address, data + at, sizeof(address));
		/* Small ones too: numbers in the text mean these. */
		for (unsigned int shift = 0; shift <= 48; shift += 16) {
			if (perf_map_find(map, address >> shift, &name, &start) == REASON_NONE)
				assert(start <= address >> shift && *name &&
				       strlen(name) < PERF_MAP_NAME_BYTES);
		}
	}
	perf_map_free(map);
	return 0;
}
