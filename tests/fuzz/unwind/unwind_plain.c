/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_plain.c: the first byte is the alignment of data, the second how much text there is, the
 * rest are the instructions of a function. Where they are plain, their rows are those of the whole
 * runner.
 */
#include <stddef.h>
#include <stdint.h>

#include "tests/unit/consumer/unwind/testing/unwind_plain_testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint32_t start;

	if (bytes < 2)
		return 0;
	start = data[1] & 1 ? 0x1000 : 0;
	whole_compare((int8_t)data[0], (struct cfi_bytes){ .at = data + 2, .end = data + bytes },
		      start, start + 1 + data[1] * 4u);
	return 0;
}
