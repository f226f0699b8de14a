/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "shared/cleanup.h"
#include "shared/macro.h"
#include "shared/rules_internal.h"

/* Scans a text alone, without json-c before it: the scanner must stand on its own. */
struct scanned {
	struct rules_scan scan;
	struct rules_collect collect;
	int r;
};

static void scan(struct scanned *s, const char *text)
{
	*s = (struct scanned){ .collect.scan = &s->scan };
	s->r = rules_scan_run(&s->scan, text, strlen(text), &s->collect);
}

static void scanned_done(struct scanned *s)
{
	rules_collect_done(&s->collect);
	rules_scan_done(&s->scan);
}

#define _cleanup_scanned_ _cleanup_(scanned_done)

static void knows_the_places(void **state)
{
	_cleanup_scanned_ struct scanned s;
	uint32_t b;

	scan(&s, "{ \"a\": [10, \"x\"],\n \"b\" : {\"c\":true} }");
	assert_int_equal(s.r, 0);
	assert_int_equal(s.scan.count, 6);
	assert_int_equal(s.scan.nodes[0].children, 2);
	assert_int_equal(rules_scan_member(&s.scan, 0, "a"), 1);
	assert_int_equal(s.scan.nodes[2].offset, 8);
	assert_int_equal(rules_scan_extent(&s.scan, 2), 2);
	assert_int_equal(rules_scan_extent(&s.scan, 3), 3);
	assert_int_equal(s.scan.nodes[3].key, 1);
	b = rules_scan_member(&s.scan, 0, "b");
	assert_int_equal(b, 4);
	assert_int_equal(rules_scan_first(&s.scan, b), 5);
	assert_true(rules_scan_member(&s.scan, b, "d") == RULES_NO_NODE);
	assert_true(rules_scan_first(&s.scan, 5) == RULES_NO_NODE);
}

static void decodes_keys(void **state)
{
	_cleanup_scanned_ struct scanned s;
	size_t bytes;
	const char *key;

	scan(&s,
	     "{\"\\u0061\\n\\/\\\"\\\\\":1,\"\\u00e4\\u20ac\\ud83d\\ude00\":2,\"\\ud83dx\\ude00\":3}");
	assert_int_equal(s.r, 0);
	key = rules_scan_key(&s.scan, 1, &bytes);
	assert_int_equal(bytes, 5);
	assert_memory_equal(key, "a\n/\"\\", 5);
	key = rules_scan_key(&s.scan, 2, &bytes);
	assert_int_equal(bytes, 9);
	assert_memory_equal(key, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9);
	key = rules_scan_key(&s.scan, 3, &bytes);
	assert_int_equal(bytes, 7);
	assert_memory_equal(key, "\xef\xbf\xbdx\xef\xbf\xbd", 7);
}

static void finds_keys_twice(void **state)
{
	_cleanup_scanned_ struct scanned few, many;
	char text[2048] = "{";

	scan(&few, "{\"a\":1,\"b\":{\"c\":1,\"\\u0063\":2},\"a\":3,\"a\":4}");
	assert_int_equal(few.r, 0);
	assert_int_equal(few.collect.count, 3);
	assert_true(few.scan.nodes[1].hidden && few.scan.nodes[5].hidden);
	assert_false(few.scan.nodes[6].hidden);

	for (int i = 0; i < 60; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "\"%d\":1,", i % 50);
	strcat(text, "\"x\":1}");
	scan(&many, text);
	assert_int_equal(many.r, 0);
	assert_int_equal(many.collect.count, 10);
	assert_true(many.scan.nodes[1].hidden && !many.scan.nodes[11].hidden);
}

static void refuses_what_is_no_json(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"{",
		"}",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"[1,]",
		"[",
		"[1 2]",
		"01",
		"-",
		"1.",
		"1e",
		"+1",
		".5",
		"NaN",
		"Infinity",
		"tru",
		"nul",
		"{a:1}",
		"'a'",
		"\"",
		"\"\\",
		"\"\\x\"",
		"\"\\u12",
		"\"\\u12g4\"",
		"\"\n\"",
		"1 1",
		"{} {}",
		"\"\xff\"",
		"\"\xc0\xaf\"",
		"\"\xed\xa0\x80\"",
		"/**/1",
		"{1:1}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_scanned_ struct scanned s;

		scan(&s, texts[i]);
		if (s.r != -EINVAL)
			fail_msg("took %s", texts[i]);
		assert_int_equal(s.collect.count, 1);
	}
}

static void takes_what_is_json(void **state)
{
	static const char *const texts[] = { "0",    "-0",	"1.5e+10",     "-1E-3",
					     "\"\"", "true",	" null\t\r\n", "[]",
					     "{}",   "[[],{}]", "\"\\ud800\"" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_scanned_ struct scanned s;

		scan(&s, texts[i]);
		if (s.r != 0)
			fail_msg("refused %s", texts[i]);
	}
}

static void nests_to_the_wall(void **state)
{
	_cleanup_scanned_ struct scanned good, bad;

	scan(&good, "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]");
	assert_int_equal(good.r, 0);
	scan(&bad, "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]");
	assert_int_equal(bad.r, -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_the_places),   cmocka_unit_test(decodes_keys),
		cmocka_unit_test(finds_keys_twice),   cmocka_unit_test(refuses_what_is_no_json),
		cmocka_unit_test(takes_what_is_json), cmocka_unit_test(nests_to_the_wall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
