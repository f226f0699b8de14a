/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/utf8.h"

#include "shared/tools/macro.h"

/*
 * Refuses overlong forms, surrogates and code points above U+10FFFF: the first two bytes identify
 * them.
 */
size_t utf8_sequence(const char *text, size_t bytes)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (bytes == 0)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (n > bytes || s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool utf8_is_text(const char *text, size_t bytes, size_t *ret_offset)
{
	for (size_t i = 0, n; i < bytes; i += n) {
		n = utf8_sequence(text + i, bytes - i);
		if (!n) {
			*ret_offset = i;
			return false;
		}
	}
	return true;
}

/*
 * Returns the code point of a well-formed sequence of at most three bytes; UINT32_MAX for a longer
 * one, which is above all rows of the table below.
 */
static uint32_t read_code(const unsigned char *s, size_t bytes)
{
	if (bytes == 1)
		return s[0];
	if (bytes == 2)
		return (uint32_t)(s[0] & 0x1f) << 6 | (s[1] & 0x3f);
	if (bytes == 3)
		return (uint32_t)(s[0] & 0xf) << 12 | (uint32_t)(s[1] & 0x3f) << 6 | (s[2] & 0x3f);
	return UINT32_MAX;
}

bool utf8_is_control(const char *sequence, size_t bytes, uint32_t *ret_code)
{
	static const struct {
		uint16_t first, last;
	} controls[] = {
		{ 0, 0x1f },	    /* C0 */
		{ 0x7f, 0x9f },	    /* DEL, C1: U+009B is ESC [ to a terminal (ECMA-48, CSI) */
		{ 0x61c, 0x61c },   /* ALM */
		{ 0x200e, 0x200f }, /* LRM, RLM */
		{ 0x2028, 0x202e }, /* line and paragraph separator; LRE, RLE, PDF, LRO, RLO */
		{ 0x2066, 0x2069 }, /* LRI, RLI, FSI, PDI */
	};
	uint32_t code = read_code((const unsigned char *)sequence, bytes);

	for (size_t i = 0; i < ARRAY_SIZE(controls); i++) {
		if (code < controls[i].first || code > controls[i].last)
			continue;
		*ret_code = code;
		return true;
	}
	return false;
}

size_t utf8_write(char *room, uint32_t code)
{
	if (code < 0x80) {
		room[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		room[0] = (char)(0xc0 | code >> 6);
		room[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		room[0] = (char)(0xe0 | code >> 12);
		room[1] = (char)(0x80 | (code >> 6 & 0x3f));
		room[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	room[0] = (char)(0xf0 | code >> 18);
	room[1] = (char)(0x80 | (code >> 12 & 0x3f));
	room[2] = (char)(0x80 | (code >> 6 & 0x3f));
	room[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}
