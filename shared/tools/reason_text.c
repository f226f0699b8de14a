/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/reason_text.h"

#include <stdint.h>

#include "shared/tools/utf8.h"

bool reason_text_is_right(const char *text, size_t bytes)
{
	uint32_t code;
	size_t n;

	if (bytes == 0 || bytes >= REASON_TEXT_BYTES)
		return false;
	for (size_t i = 0; i < bytes; i += n) {
		n = utf8_sequence(text + i, bytes - i);
		if (n == 0 || utf8_is_control(text + i, n, &code))
			return false;
	}
	return true;
}
