/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include "shared/tools/path_text.h"
#include "shared/tools/utf8.h"

static size_t cut(const char *path, char *to, size_t space)
{
	return path_text_cut(path, strlen(path), to, space);
}

static void test_short(void **state)
{
	char to[PATH_TEXT_LEAST];

	assert_int_equal(cut("/srv/data", to, sizeof(to)), 0);
	assert_string_equal(to, "/srv/data");
	assert_int_equal(cut("", to, sizeof(to)), 0);
	assert_string_equal(to, "");
	assert_int_equal(cut("/0123456789/0123456789/0123456789/0123456789abc", to, sizeof(to)), 0);
	assert_string_equal(to, "/0123456789/0123456789/0123456789/0123456789abc");
}

/* From one name to another, with the left-out part between them. */
static void test_middle(void **state)
{
	static const char path[] =
		"/srv/postgresql/one-name/two-names/three-names/four-names/base/16384/2619";
	char to[64];

	assert_int_equal(cut(path, to, sizeof(to)), 41);
	assert_string_equal(to, "/srv/[41 bytes]/four-names/base/16384/2619");
}

/* A single name without an end: both of its ends are shown. */
static void test_one_name(void **state)
{
	char path[5000], to[PATH_TEXT_LEAST];

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(cut(path, to, sizeof(to)), 4999 - 18);
	assert_string_equal(to, "/xxxxx[4981 bytes]xxxxxxxxxxxx");
}

/* Whatever its length and its letters, both ends are the path's and the sum is whole. */
static void test_all(void **state)
{
	static const char letters[] = "ab/\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
	size_t offset;

	srandom(15);
	for (int turn = 0; turn < 20000; turn++) {
		char path[400], to[300], *mark, *end;
		size_t n = 0, bytes, most = (size_t)random() % 360, head, tail;
		size_t space = PATH_TEXT_LEAST + (size_t)random() % 100;

		while (n < most) {
			size_t at = (size_t)random() % (sizeof(letters) - 1), one;

			one = utf8_sequence(letters + at, sizeof(letters) - 1 - at);
			memcpy(path + n, letters + at, one);
			n += one;
		}
		path[n] = '\0';
		bytes = path_text_cut(path, n, to, space);
		assert_true(strlen(to) < space && utf8_is_text(to, strlen(to), &offset));
		if (!bytes) {
			assert_string_equal(to, path);
			continue;
		}
		mark = strchr(to, '[');
		assert_non_null(mark);
		assert_int_equal(strtoul(mark + 1, &end, 10), bytes);
		head = (size_t)(mark - to);
		end += strlen(" bytes]");
		tail = strlen(end);
		assert_int_equal(head + bytes + tail, n);
		assert_memory_equal(path, to, head);
		assert_string_equal(path + n - tail, end);
		assert_true(tail >= head);
	}
}

static void test_within(void **state)
{
	assert_true(path_text_is_within("/a/b", "/a"));
	assert_true(path_text_is_within("/a", "/a"));
	assert_true(path_text_is_within("/a", ""));
	assert_false(path_text_is_within("/ab", "/a"));
	assert_false(path_text_is_within("/", "/a"));
}

UNIT_TESTS(path_text)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short),	 cmocka_unit_test(test_middle),
		cmocka_unit_test(test_one_name), cmocka_unit_test(test_all),
		cmocka_unit_test(test_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
