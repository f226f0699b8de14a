/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/cli/text_width.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/terminal.h"
#include "shared/tools/macro.h"
#include "shared/tools/utf8.h"

struct range {
	uint32_t first, last;
};

/* Blocks of Unicode 15 with only or mostly wide characters (EastAsianWidth.txt: W and F). */
static const struct range wide[] = {
	{ 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0xa4cf },	  { 0xa960, 0xa97c },
	{ 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },	  { 0xff00, 0xff60 },
	{ 0xffe0, 0xffe6 },   { 0x16fe0, 0x18d08 }, { 0x1b000, 0x1b2fb }, { 0x1f300, 0x1f64f },
	{ 0x1f680, 0x1f6ff }, { 0x1f900, 0x1faff }, { 0x20000, 0x3fffd },
};

/* Characters that combine with the character before them. */
static const struct range none[] = {
	{ 0x0300, 0x036f }, { 0x200b, 0x200d }, { 0x20d0, 0x20f0 },
	{ 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, { 0xe0100, 0xe01ef },
};

static bool is_in(const struct range *ranges, size_t n, uint32_t code)
{
	for (size_t i = 0; i < n; i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

static uint32_t decode_character(const char *text, size_t bytes)
{
	uint32_t code = (unsigned char)text[0];

	if (bytes > 1)
		code &= 0x7fu >> bytes;
	for (size_t i = 1; i < bytes; i++)
		code = code << 6 | ((unsigned char)text[i] & 0x3f);
	return code;
}

/* Returns the bytes of a colour sequence, "\x1b[...m"; 0: there is none. */
static size_t measure_colour(const char *text)
{
	size_t n = strspn(text + 2, "0123456789;");

	return text[2 + n] == 'm' ? n + 3 : 0;
}

size_t text_width_step(const char *text, unsigned int *ret_columns)
{
	size_t bytes = text[0] == '\x1b' && text[1] == '[' ? measure_colour(text) : 0;
	uint32_t code;

	*ret_columns = 0;
	if (bytes || !*text)
		return bytes;
	bytes = utf8_sequence(text, strnlen(text, 4));
	bytes = MAX(bytes, (size_t)1);
	code = decode_character(text, bytes);
	*ret_columns = is_in(wide, ARRAY_SIZE(wide), code)   ? 2
		       : is_in(none, ARRAY_SIZE(none), code) ? 0
							     : 1;
	return bytes;
}

unsigned int text_width(const char *text)
{
	unsigned int columns = 0, one;

	for (size_t bytes; (bytes = text_width_step(text, &one)) > 0; text += bytes)
		columns += one;
	return columns;
}

/* Returns the bytes of the longest beginning that fits into `columns`. */
static size_t measure_head(const char *text, unsigned int columns)
{
	size_t all = 0, bytes;
	unsigned int one;

	while ((bytes = text_width_step(text + all, &one)) > 0 && one <= columns) {
		columns -= one;
		all += bytes;
	}
	return all;
}

/* Returns the longest end of the text that fits into `columns`. */
static const char *find_tail(const char *text, unsigned int columns)
{
	unsigned int width = text_width(text), one;

	while (width > columns) {
		text += text_width_step(text, &one);
		width -= one;
	}
	return text;
}

/*
 * Keeps `head` columns at the begin and `tail` columns at the end of a text that is wider than
 * both.
 */
static char *put_ellipsis(char *text, unsigned int head, unsigned int tail)
{
	char *shorter;

	if (asprintf(&shorter, "%.*s%s%s", (int)measure_head(text, head), text,
		     terminal_get()->utf8 ? "\xe2\x80\xa6" : "..", find_tail(text, tail)) < 0)
		return text;
	free(text);
	return shorter;
}

char *text_width_shorten(char *text, unsigned int columns)
{
	unsigned int left = columns - (terminal_get()->utf8 ? 1 : 2), head = (left + 1) / 2;

	return text_width(text) <= columns ? text : put_ellipsis(text, head, left - head);
}

char *text_width_cut(char *text, unsigned int columns)
{
	unsigned int left = columns - (terminal_get()->utf8 ? 1 : 2);

	return text_width(text) <= columns ? text : put_ellipsis(text, left, 0);
}
