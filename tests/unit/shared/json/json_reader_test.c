/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <string.h>

#include "shared/json/json_reader.h"
#include "shared/tools/macro.h"

static bool valid(const char *text)
{
	struct json_reader s;

	json_reader_init(&s, text, strlen(text), JSON_READER_NESTING);
	return json_reader_skip(&s) && json_reader_end(&s);
}

static void test_takes_json(void **state)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		"null",
		"true",
		"false",
		"0",
		"-0.5e+7",
		"\"\"",
		"\"\\u00e4\\n\"",
		" { \"a\" : [ 1 , { } , [ ] , \"\xc3\xa4\" ] , \"b\":null} ",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_true(valid(texts[i]));
}

static void test_refuses_malformed_text(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"}",
		"{}x",
		"[1,]",
		"[,1]",
		"{\"a\":1,}",
		"{a:1}",
		"{\"a\" 1}",
		"[1 2]",
		"01",
		"1.",
		"-",
		"+1",
		"1e",
		"nul",
		"\"",
		"\"\\x\"",
		"\"\\u12g4\"",
		"\"\n\"",
		"\"\xff\"",
		"\"\xc0\xaf\"",
		"[1}",
		"NaN",
		"{\"a\":1 \"b\":2}",
		"'a'",
		"\"\\",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_false(valid(texts[i]));
}

static void test_nesting_has_a_wall(void **state)
{
	char text[2 * (JSON_READER_NESTING + 1) + 1] = { 0 };

	memset(text, '[', JSON_READER_NESTING);
	memset(text + JSON_READER_NESTING, ']', JSON_READER_NESTING);
	assert_true(valid(text));
	memset(text, '[', JSON_READER_NESTING + 1);
	memset(text + JSON_READER_NESTING + 1, ']', JSON_READER_NESTING + 1);
	assert_false(valid(text));
}

static uint64_t number(const char *text, bool *ret_fine)
{
	uint64_t n = 0;
	struct json_reader s;

	json_reader_init(&s, text, strlen(text), JSON_READER_NESTING);
	*ret_fine = json_reader_u64(&s, 1, UINT64_MAX, &n) && json_reader_end(&s);
	return n;
}

static void test_numbers_are_whole_and_fit(void **state)
{
	static const char *const wrong[] = { "0",    "-1", "1.0",
					     "1e3",  "01", "18446744073709551616",
					     "\"1\"" };
	bool fine;

	assert_true(number("18446744073709551615", &fine) == UINT64_MAX && fine);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		number(wrong[i], &fine);
		assert_false(fine);
	}
}

static void test_escapes_become_characters(void **state)
{
	static const struct {
		const char *json, *plain;
	} cases[] = {
		{ "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "a\"\\/\b\f\n\r\t" },
		{ "\"\\u0041\\u00e4\\u20ac\"", "A\xc3\xa4\xe2\x82\xac" },
		{ "\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80" },
		{ "\"\\ud83dx\"", "\xef\xbf\xbdx" },
		{ "\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
					"A" },
	};
	char plain[64];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_text text;
		struct json_reader s;
		size_t n;

		json_reader_init(&s, cases[i].json, strlen(cases[i].json), JSON_READER_NESTING);
		assert_true(json_reader_string(&s, false, &text));
		n = json_reader_decode(&text, plain);
		assert_int_equal(n, strlen(cases[i].plain));
		assert_memory_equal(plain, cases[i].plain, n);
	}
}

static void test_first_fault_stays(void **state)
{
	struct json_text key;
	struct json_reader s;

	json_reader_init(&s, "{\"a\":x,\"b\":1}", 13, JSON_READER_NESTING);
	assert_true(json_reader_object(&s));
	assert_true(json_reader_key(&s, &key));
	assert_int_equal(key.bytes, 1);
	assert_false(json_reader_skip(&s));
	assert_int_equal(s.at - s.start, 5);
	assert_false(json_reader_key(&s, &key));
	assert_false(json_reader_end(&s));
	assert_string_equal(s.fault, "want a JSON value");
}

UNIT_TESTS(json_reader)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_takes_json),
		cmocka_unit_test(test_refuses_malformed_text),
		cmocka_unit_test(test_nesting_has_a_wall),
		cmocka_unit_test(test_numbers_are_whole_and_fit),
		cmocka_unit_test(test_escapes_become_characters),
		cmocka_unit_test(test_first_fault_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
