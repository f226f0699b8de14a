/* SPDX-License-Identifier: BSD-2-Clause */
/* mappings.c: any bytes as records of the `vmas` iterator; every path may name a runtime. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "consumer/mappings/mapping_records.h"
#include "consumer/mappings/runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int take(void *context, const struct mapping_record *record, const char *path)
{
	struct runtime runtime;

	assert(strlen(path) < MAPPING_PATH_BYTES);
	assert((record->flags & MAPPING_MORE) || record->start < record->end);
	if (runtime_of_path(path, record->flags & MAPPING_IS_EXE, &runtime))
		assert(strlen(runtime.version) < sizeof(runtime.version));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	ssize_t used = mapping_records_parse(data, bytes, take, NULL);

	assert(used < 0 || (size_t)used <= bytes);
	return 0;
}
