/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of code objects: texts of all kinds, cut and malformed ones, limits, lifetimes. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdio.h>

#include "consumer/runtimes/code_names.h"

/* Adds a code object with a name and a file in ASCII. */
static void add(struct code_names *n, uint32_t number, const char *name, const char *file)
{
	struct runtime_name r = { .number = number, .version = 0x030b, .first_line = 7 };

	r.name_bytes = (uint32_t)strlen(name);
	r.file_bytes = (uint32_t)strlen(file);
	memcpy(r.name, name, r.name_bytes);
	memcpy(r.file, file, r.file_bytes);
	/* Ten instructions of line 9: a short form, with no distance, after one of two lines. */
	memcpy(r.table, "\xf8\x04\x81\x00", r.table_bytes = 3);
	code_names_add(n, &r, offsetof(struct runtime_name, table) + r.table_bytes);
}

static bool find(struct code_names *n, uint32_t number, struct code_place *ret)
{
	return code_names_find(n, RUNTIME_WORD(number, 2, 0), ret);
}

static void names_files_and_lines(void **state)
{
	struct code_place place;
	struct code_names n;

	code_names_init(&n);
	add(&n, 5, "Query.slow", "/srv/app.py");
	assert_true(find(&n, 5, &place));
	assert_string_equal(place.fn, "Query.slow");
	assert_string_equal(place.file, "/srv/app.py");
	assert_false(find(&n, 6, &place));
	assert_false(find(&n, 0, &place));
	/* A frame that has not begun is in its first line; of an unknown instruction is none. */
	assert_true(code_names_find(&n, RUNTIME_WORD(5, 0, RUNTIME_RUN_ENDS), &place));
	assert_int_equal(place.line, 7);
	assert_true(code_names_find(&n, RUNTIME_WORD(5, RUNTIME_INSTRUCTION_MAX, 0), &place));
	assert_int_equal(place.line, 0);
	code_names_done(&n);
}

/* The texts of all kinds become UTF-8; a code that is no character becomes U+FFFD. */
static void texts_become_utf8(void **state)
{
	static const struct {
		uint8_t text;
		size_t bytes;
		const char *stored, *utf8;
	} rows[] = {
		{ RUNTIME_TEXT_LATIN1, 3, "a\xe9z", "a\xc3\xa9z" },
		{ RUNTIME_TEXT_UCS2, 4, "\x16\x04\x61\x00",
		  "\xd0\x96"
		  "a" },
		{ RUNTIME_TEXT_UCS2, 4, "\x00\xd8\x61\x00",
		  "\xef\xbf\xbd"
		  "a" },
		{ RUNTIME_TEXT_UCS4, 4, "\x00\xf6\x01\x00", "\xf0\x9f\x98\x80" },
		{ RUNTIME_TEXT_UCS4, 4, "\xff\xff\xff\xff", "\xef\xbf\xbd" },
		{ RUNTIME_TEXT_LATIN1, 2, "a\0", "a\xef\xbf\xbd" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct runtime_name r = { .number = 1, .name_text = rows[i].text };
		struct code_place place;
		struct code_names n;

		code_names_init(&n);
		r.name_bytes = (uint32_t)rows[i].bytes;
		memcpy(r.name, rows[i].stored, rows[i].bytes);
		code_names_add(&n, &r, offsetof(struct runtime_name, table));
		assert_true(find(&n, 1, &place));
		assert_string_equal(place.fn, rows[i].utf8);
		assert_string_equal(place.file, "");
		code_names_done(&n);
	}
}

static void long_texts_say_that_they_are_cut(void **state)
{
	struct runtime_name r = { .number = 1, .name_bytes = RUNTIME_NAME_BYTES + 1 };
	char expected[RUNTIME_NAME_BYTES + 4];
	struct code_place place;
	struct code_names n;

	memset(r.name, 'x', sizeof(r.name));
	snprintf(expected, sizeof(expected), "%.*s...", RUNTIME_NAME_BYTES, (char *)r.name);
	code_names_init(&n);
	code_names_add(&n, &r, offsetof(struct runtime_name, table));
	assert_true(find(&n, 1, &place));
	assert_string_equal(place.fn, expected);
	code_names_done(&n);
}

static void malformed_records_are_refused(void **state)
{
	struct runtime_name r = { .number = 1, .table_bytes = 10 };
	struct code_names_stats stats;
	struct code_names n;

	code_names_init(&n);
	code_names_add(&n, &r, 8);
	code_names_add(&n, &r, offsetof(struct runtime_name, table) + 9); /* the table is missing */
	r.name_text = 3;
	code_names_add(&n, &r, sizeof(r));
	r.name_text = 0;
	r.file_text = 200;
	code_names_add(&n, &r, sizeof(r));
	r.file_text = 0;
	r.number = 0;
	code_names_add(&n, &r, sizeof(r));
	r.number = 1;
	code_names_add(&n, &r, sizeof(r));
	code_names_add(&n, &r, sizeof(r)); /* the number is taken */
	code_names_stats(&n, &stats);
	assert_int_equal(stats.refused, 6);
	assert_int_equal(stats.added, 1);
	code_names_done(&n);
}

/* The oldest leave first, and texts that were returned stay until the next trim. */
static void limits_and_lifetimes(void **state)
{
	struct code_names_stats stats;
	struct code_place place, gone;
	struct code_names n;

	code_names_init(&n);
	add(&n, 1, "first", "f");
	assert_true(find(&n, 1, &place));
	for (uint32_t i = 2; i <= CODE_NAMES_MAX + 10; i++)
		add(&n, i, "g", "f");
	assert_false(find(&n, 1, &gone));
	assert_string_equal(place.fn, "first");
	code_names_stats(&n, &stats);
	assert_int_equal(stats.count, CODE_NAMES_MAX);
	assert_int_equal(stats.evicted, 10);
	code_names_trim(&n);
	assert_true(find(&n, CODE_NAMES_MAX + 10, &place));
	code_names_done(&n);
}

UNIT_TESTS(code_names)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_files_and_lines),
		cmocka_unit_test(texts_become_utf8),
		cmocka_unit_test(long_texts_say_that_they_are_cut),
		cmocka_unit_test(malformed_records_are_refused),
		cmocka_unit_test(limits_and_lifetimes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
