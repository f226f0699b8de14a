/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <stdbool.h>
#include <string.h>

#include "shared/tools/macro.h"
#include "shared/tools/reason_text.h"
#include "shared/tools/utf8.h"

static void takes_words(void **state)
{
	static const char *const right[] = { "x", " ", "checkout p99 > 500 ms",
					     "naïve 注文 \"q\" \\" };

	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		if (!reason_text_is_right(right[i], strlen(right[i])))
			fail_msg("%s", right[i]);
}

static void knows_its_length(void **state)
{
	char text[REASON_TEXT_BYTES];

	memset(text, 'a', sizeof(text));
	assert_true(reason_text_is_right(text, REASON_TEXT_BYTES - 1));
	assert_false(reason_text_is_right(text, REASON_TEXT_BYTES));
	assert_false(reason_text_is_right(text, 0));
}

/* Every code point, between letters: right unless it controls something. */
static void refuses_every_control(void **state)
{
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		char text[8] = "a";
		uint32_t found;
		size_t n;

		if (code >= 0xd800 && code < 0xe000)
			continue;
		n = utf8_write(text + 1, code);
		text[1 + n] = 'b';
		if (reason_text_is_right(text, n + 2) == utf8_is_control(text + 1, n, &found))
			fail_msg("%x", code);
	}
	assert_false(reason_text_is_right("a\nb", 3));
	assert_false(reason_text_is_right("a\0b", 3));
	assert_false(reason_text_is_right("a\x7f", 2));
	assert_false(reason_text_is_right("\xc2\x9b", 2));
}

static void refuses_other_bytes(void **state)
{
	assert_false(reason_text_is_right("\xff", 1));
	assert_false(reason_text_is_right("a\xc3", 2));
	assert_false(reason_text_is_right("\xed\xa0\x80", 3));
}

UNIT_TESTS(reason_text)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_words),
		cmocka_unit_test(knows_its_length),
		cmocka_unit_test(refuses_every_control),
		cmocka_unit_test(refuses_other_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
