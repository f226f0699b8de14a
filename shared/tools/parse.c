/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/parse.h"

#include <errno.h>
#include <stdbool.h>

int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number)
{
	bool overflow = false;
	uint64_t number = 0;

	if (!*text)
		return -EINVAL;
	/*
	 * Check the characters after an overflow too: "99999999999999999999x" is malformed, not too
	 * large.
	 */
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		overflow |= __builtin_mul_overflow(number, 10u, &number);
		overflow |= __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number);
	}
	if (overflow || number < min || number > max)
		return -ERANGE;
	*ret_number = number;
	return 0;
}
