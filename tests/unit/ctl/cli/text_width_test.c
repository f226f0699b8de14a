/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/cli/terminal.h"
#include "ctl/cli/text_width.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static void test_width(void **state)
{
	static const struct {
		const char *text;
		unsigned int columns;
	} rows[] = {
		{ "", 0 },
		{ "abc", 3 },
		{ "\xc3\xa9\xe2\x96\x88", 2 },
		{ "\xe4\xb8\xad\xe6\x96\x87x", 5 },    /* wide */
		{ "e\xcc\x81", 1 },		       /* an accent of its own */
		{ "\xf0\x9f\x98\x80", 2 },	       /* a face */
		{ "\x1b[1mab\x1b[m\x1b[38;5;9mc", 3 }, /* colours */
		{ "\x1b[2Jx", 5 },		       /* no colour, and never printed so */
		{ "\xff\xc3", 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(text_width(rows[i].text), rows[i].columns);
}

static void shortens(const char *text, unsigned int columns, const char *expected)
{
	_cleanup_free_ char *shorter = text_width_shorten(strdup(text), columns);

	assert_string_equal(shorter, expected);
	assert_true(text_width(shorter) <= columns);
}

static void test_shorten(void **state)
{
	terminal_use(&(struct terminal){ .utf8 = false });
	shortens("sortCommand", 11, "sortCommand");
	shortens("sortCommand", 10, "sort..mand");
	shortens("sortCommand", 9, "sort..and");
	shortens("abcd", 3, "a..");
	terminal_use(&(struct terminal){ .utf8 = true });
	shortens("sortCommand", 10, "sortC\xe2\x80\xa6mand");
	shortens("ab", 3, "ab");
	/* A wide character that would stand half in it stays out. */
	shortens("\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87", 6,
		 "\xe4\xb8\xad\xe2\x80\xa6\xe6\x96\x87");
	terminal_use(&(struct terminal){ 0 });
}

UNIT_TESTS(text_width)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_shorten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
