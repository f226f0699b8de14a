/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/cli/terminal.h"
#include "ctl/cli/wrap.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* What lines of at most 20 columns become, written in pieces of `piece` bytes. */
static char *wrap(const char *text, size_t piece)
{
	char *result = NULL;
	size_t bytes, left = strlen(text);
	FILE *out = open_memstream(&result, &bytes), *wrapping = wrap_open(out, 20);

	for (size_t n; left; left -= n, text += n) {
		n = MIN(piece, left);
		fwrite(text, 1, n, wrapping);
		fflush(wrapping);
	}
	wrap_close(wrapping);
	fclose(out);
	return result;
}

static void becomes(const char *text, const char *expected)
{
	_cleanup_free_ char *whole = wrap(text, SIZE_MAX), *pieces = wrap(text, 3);

	assert_string_equal(whole, expected);
	assert_string_equal(pieces, expected);
}

static void test_lines(void **state)
{
	becomes("", "");
	becomes("12345678901234567890\n\nx\n", "12345678901234567890\n\nx\n");
	becomes("one two three four five six seven\n", "one two three four\n  five six seven\n");
	becomes("no end", "no end");
	/* Below its own indentation, or below the text after the gap. */
	becomes("  one two three four five\n", "  one two three four\n    five\n");
	becomes("  -x   one two three four\n", "  -x   one two three\n       four\n");
	becomes("  98 %  one two three four\n", "  98 %  one two\n        three four\n");
	/* A gap behind the middle is none of that kind. */
	becomes("one two three  four five six\n", "one two three  four\n  five six\n");
}

static void test_words(void **state)
{
	/* A word that is longer than a line stays whole. */
	becomes("a /system.slice/nginx.service/worker b\n",
		"a\n  /system.slice/nginx.service/worker\n  b\n");
	becomes("/system.slice/nginx.service/worker\n", "/system.slice/nginx.service/worker\n");
	/* Colours take no room, blanks at a break go. */
	becomes("\x1b[1mone two\x1b[m three four   five\n",
		"\x1b[1mone two\x1b[m three four\n  five\n");
	/* A colour does not continue over the indentation. */
	becomes("\x1b[1mone two three four five six seven\x1b[m\n",
		"\x1b[1mone two three four\x1b[m\n  \x1b[1mfive six seven\x1b[m\n");
}

static void test_not(void **state)
{
	becomes(WRAP_NOT "one two three four five six\n", "one two three four five six\n");
	assert_string_equal(wrap_not(), "");
	terminal_use(&(struct terminal){ .columns = 80 });
	assert_string_equal(wrap_not(), WRAP_NOT);
	terminal_use(&(struct terminal){ 0 });
}

UNIT_TESTS(wrap)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
