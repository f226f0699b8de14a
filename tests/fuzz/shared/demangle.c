/* SPDX-License-Identifier: BSD-2-Clause */
/* demangle.c: any text as a symbol's name; what comes out is bounded and in good time. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[DEMANGLE_OUT_BYTES], *raw = malloc(bytes + 1);

	if (!raw)
		return 0;
	memcpy(raw, data, bytes);
	raw[bytes] = '\0';
	if (demangle(raw, text))
		assert(strlen(text) < sizeof(text));
	free(raw);
	return 0;
}
