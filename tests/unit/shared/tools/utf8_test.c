/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <iconv.h>
#include <string.h>

#include "shared/tools/utf8.h"

/* The C library's own reading of UTF-8: 0 when no whole character stands there. */
static size_t by_iconv(iconv_t utf32, const char *text, size_t bytes)
{
	char *from = (char *)text, room[4], *to = room;
	size_t left = bytes, space = sizeof(room);

	iconv(utf32, NULL, NULL, NULL, NULL);
	iconv(utf32, &from, &left, &to, &space);
	return space ? 0 : bytes - left;
}

/* Every text of three bytes that does not begin with ASCII, and a share of those of four. */
static void knows_every_sequence(void **state)
{
	iconv_t utf32 = iconv_open("UTF-32LE", "UTF-8");

	assert_true(utf32 != (iconv_t)-1);
	assert_int_equal(utf8_sequence("", 0), 0);
	for (uint32_t i = 0x800000; i < 0x1000000; i++) {
		const char text[4] = { (char)(i >> 16), (char)(i >> 8), (char)i,
				       (char)(i * 2654435761u >> 24) };

		for (size_t bytes = i & 0x3f ? 4 : 1; bytes <= 4; bytes++)
			if (utf8_sequence(text, bytes) != by_iconv(utf32, text, bytes))
				fail_msg("%06x, %zu bytes", i, bytes);
	}
	iconv_close(utf32);
}

static void finds_the_first_byte_that_is_none(void **state)
{
	size_t offset = 99;

	assert_true(utf8_is_text("", 0, &offset));
	assert_true(utf8_is_text("a\0\xf0\x9f\x98\x80", 6, &offset));
	assert_int_equal(offset, 99);
	assert_false(utf8_is_text("ab\xed\xa0\x80", 5, &offset));
	assert_int_equal(offset, 2);
	assert_false(utf8_is_text("\xf0\x9f\x98", 3, &offset));
	assert_int_equal(offset, 0);
}

/* Every code point but surrogates comes back as the one character that was written. */
static void writes_every_code_point(void **state)
{
	iconv_t utf32 = iconv_open("UTF-32LE", "UTF-8");

	assert_true(utf32 != (iconv_t)-1);
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		char text[4], *from = text;
		size_t bytes, left, space = 4;
		uint32_t back = UINT32_MAX;
		char *to = (char *)&back;

		if (code >= 0xd800 && code <= 0xdfff)
			continue;
		left = bytes = utf8_write(text, code);
		iconv(utf32, &from, &left, &to, &space);
		if (back != code || left || utf8_sequence(text, bytes) != bytes)
			fail_msg("U+%04x", code);
	}
	iconv_close(utf32);
}

static void finds_terminal_control_characters(void **state)
{
	uint32_t code = 0;

	assert_true(utf8_is_control("\x1b", 1, &code));
	assert_int_equal(code, 0x1b);
	assert_true(utf8_is_control("\xc2\x9b", 2, &code));
	assert_int_equal(code, 0x9b);
	assert_true(utf8_is_control("\xe2\x80\xae", 3, &code));
	assert_int_equal(code, 0x202e);
	assert_false(utf8_is_control("a", 1, &code));
	assert_false(utf8_is_control("\xc2\xa0", 2, &code));
	assert_false(utf8_is_control("\xf0\x92\x80\xae", 4, &code));
	assert_int_equal(code, 0x202e);
}

UNIT_TESTS(utf8)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_every_sequence),
		cmocka_unit_test(finds_the_first_byte_that_is_none),
		cmocka_unit_test(writes_every_code_point),
		cmocka_unit_test(finds_terminal_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
