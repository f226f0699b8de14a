/* SPDX-License-Identifier: BSD-2-Clause */
/* utf8.h: checks UTF-8, and finds the characters that must not reach a terminal. */
#ifndef TROCAR_SHARED_TOOLS_UTF8_H
#define TROCAR_SHARED_TOOLS_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns the bytes of the well-formed UTF-8 sequence at `text` (Unicode 15, table 3-7); 0: there
 * is no such sequence.
 */
size_t utf8_sequence(const char *text, size_t bytes);

/*
 * Whether all `bytes` bytes are UTF-8; if not, *ret_offset is the offset of the first that is not.
 */
bool utf8_is_text(const char *text, size_t bytes, size_t *ret_offset);

/*
 * Whether the well-formed UTF-8 sequence of `bytes` bytes controls a terminal or makes a text look
 * like another one: control characters (C0, DEL, C1), line and paragraph separators, and the
 * controls of the bidirectional algorithm (Unicode 15, UAX #9 section 2). If so, *ret_code is its
 * code point.
 */
bool utf8_is_control(const char *sequence, size_t bytes, uint32_t *ret_code);

/* Writes a code point (at most U+10FFFF, not a surrogate) as 1 to 4 bytes; returns their number. */
size_t utf8_write(char *room, uint32_t code);

#endif
