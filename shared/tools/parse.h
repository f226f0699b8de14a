/* SPDX-License-Identifier: BSD-2-Clause */
/* parse.h: parses foreign numbers within limits. */
#ifndef TROCAR_SHARED_TOOLS_PARSE_H
#define TROCAR_SHARED_TOOLS_PARSE_H

#include <stdint.h>

/*
 * Parses all of `text` as a decimal number within [min, max]: digits only, no sign, no space. 0;
 * -EINVAL (not a number); -ERANGE.
 */
int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number);

#endif
