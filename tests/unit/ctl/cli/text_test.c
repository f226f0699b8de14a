/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static void test_bytes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536, "1.5 KiB" },
		{ 4194304, "4.0 MiB" },
		{ 1048575, "1.0 MiB" },
		{ UINT64_MAX, "16.0 EiB" },
	};
	char text[TEXT_UNIT_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(text_bytes(rows[i].bytes, text), rows[i].text);
}

static void test_duration(void **state)
{
	static const struct {
		uint64_t us;
		const char *text;
	} rows[] = {
		{ 0, "0 s" },
		{ 850, "850 us" },
		{ 999999, "999 ms" },
		{ 1000000, "1.0 s" },
		{ 59990000, "59.9 s" },
		{ 60000000, "1 min 0 s" },
		{ 7500000000, "2 h 5 min" },
		{ 273600000000, "3 d 4 h" },
		{ UINT64_MAX, "213503982 d 8 h" },
	};
	char text[TEXT_UNIT_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(text_duration_us(rows[i].us, text), rows[i].text);
}

static void test_tame(void **state)
{
	static const char wild[] = "a\x1b[2J\n\x7f\xc2\x9b"
				   "1m\xff\xc0\x80\xc3\xa9\0z\xe2\x82";
	_cleanup_free_ char *tame = text_tame(wild, sizeof(wild) - 1);

	assert_string_equal(tame, "a\\x1b[2J\\x0a\\x7f\\xc2\\x9b1m\\xff\\xc0\\x80\xc3\xa9\\x00z"
				  "\\xe2\\x82");
}

/* A name that turns the order in which it is read, or ends its line, is shown escaped. */
static void test_tame_order(void **state)
{
	static const char wild[] = "\xe2\x80\xaegnp.exe\xe2\x81\xa6\xd8\x9c\xe2\x80\x8f\xe2\x80\xa8"
				   "\xe2\x80\xa9\xe2\x82\xac";
	_cleanup_free_ char *tame = text_tame(wild, sizeof(wild) - 1);

	assert_string_equal(tame, "\\xe2\\x80\\xaegnp.exe\\xe2\\x81\\xa6\\xd8\\x9c\\xe2\\x80\\x8f"
				  "\\xe2\\x80\\xa8\\xe2\\x80\\xa9\xe2\x82\xac");
}

static void test_json(void **state)
{
	static const char json[] = "{\n \"a\":\"\xc2\x9b\x7f\xc2\xa0\xc3\xa9\xe2\x80\xae\"}\n";
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	text_json(out, json, strlen(json));
	fclose(out);
	assert_string_equal(text, "{\n \"a\":\"\\u009b\\u007f\xc2\xa0\xc3\xa9\\u202e\"}\n");
}

static void test_json_pretty(void **state)
{
	static const char json[] =
		"{\"a\":{ },\"b\" : [],\t\"c\":[1,{\"d\":\"x,{\\\"[\\\\\",\"e\":[[]]},"
		"\"\x7f\"],\"f\":{\"g\":null}}\n";
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	text_json_pretty(out, json, strlen(json));
	fclose(out);
	assert_string_equal(
		text,
		"{\n  \"a\": {\n  },\n  \"b\": [\n  ],\n  \"c\": [\n    1,\n    {\n"
		"      \"d\": \"x,{\\\"[\\\\\",\n      \"e\": [\n        [\n        ]\n"
		"      ]\n    },\n    \"\\u007f\"\n  ],\n  \"f\": {\n    \"g\": null\n  }\n}");
}

static void test_table(void **state)
{
	_cleanup_(text_table_done) struct text_table table;
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	text_table_init(&table, 3);
	for (int i = 0; i < 3; i++)
		text_table_add(&table, strdup("HEAD"));
	text_table_add(&table, strdup("long cell"));
	text_table_add(&table, NULL);
	text_table_add(&table, strdup("x"));
	text_table_add(&table, strdup("\xc3\xa9\xc3\xa9"));
	text_table_add(&table, strdup("12345"));
	text_table_add(&table, strdup("y"));
	assert_int_equal(text_table_print(&table, 1, out), 0);
	fclose(out);
	assert_string_equal(text, " HEAD       HEAD   HEAD\n"
				  " long cell  -      x\n"
				  " \xc3\xa9\xc3\xa9         12345  y\n");
}

/* A table of the rows, in lines of so many columns. */
static char *fit(unsigned int columns, uint32_t spare, const char *const rows[][4], size_t n)
{
	_cleanup_(text_table_done) struct text_table table;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	terminal_use(&(struct terminal){ .columns = columns });
	text_table_init(&table, 4);
	table.spare = spare;
	for (size_t i = 0; i < n; i++)
		for (int c = 0; c < 4; c++)
			text_table_add(&table, strdup(rows[i][c]));
	assert_int_equal(text_table_print(&table, 2, out), 0);
	terminal_use(&(struct terminal){ 0 });
	fclose(out);
	return text;
}

static void test_table_fits(void **state)
{
	static const char *const rows[][4] = {
		{ "N", "FUNCTION", "MODULE", "WHY" },
		{ "1", "a_function_of_40_characters_in_its_name_",
		  "libcrypto.so.3-of-30-characters", "because" },
	};
	_cleanup_free_ char *wide = fit(0, 0, rows, 2), *narrow = fit(60, 0, rows, 2),
			    *less = fit(56, 1u << 2 | 1u << 3, rows, 2),
			    *least = fit(40, 0, rows, 2);

	assert_non_null(strstr(wide, "a_function_of_40_characters_in_its_name_  libcrypto.so.3-of-"
				     "30-characters  because\n"));
	/* Names lose their middle, the widest first. */
	assert_string_equal(narrow,
			    "  N  FUNCTION                MODULE                  WHY\n"
			    "  1  a_function.._its_name_  libcrypto...characters  because\n");
	/* What can be left out goes, the last one first, before a name is cut to pieces. */
	assert_string_equal(less, "  N  FUNCTION                  MODULE\n"
				  "  1  a_function_..n_its_name_  libcrypto.so..-characters\n");
	assert_string_equal(least, "  N  FUNCTION      MODULE        WHY\n"
				   "  1  a_fun..name_  libcr..cters  because\n");
}

UNIT_TESTS(text)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes), cmocka_unit_test(test_duration),
		cmocka_unit_test(test_tame),  cmocka_unit_test(test_tame_order),
		cmocka_unit_test(test_json),  cmocka_unit_test(test_json_pretty),
		cmocka_unit_test(test_table), cmocka_unit_test(test_table_fits),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
