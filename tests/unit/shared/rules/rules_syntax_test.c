/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/macro.h"
#include "tests/unit/shared/rules/rules_testing.h"

/* What other notations allow is named, at its own place. */
static void names_slips(void **state)
{
	static const struct {
		const char *text, *part;
		unsigned int column;
	} slips[] = {
		{ "{ // why\n\"version\":1}", "JSON has no comments", 3 },
		{ "# why\n{}", "JSON has no comments", 1 },
		{ "{\"version\":1, /* why */ \"rules\":[]}", "JSON has no comments", 15 },
		{ "{\"version\":1 /* why */, \"rules\":[]}", "JSON has no comments", 14 },
		{ "{\"version\":1,\"rules\":[]} # why", "JSON has no comments", 26 },
		{ "{\"version\":1,\"rules\":[] , }", "no comma after the last member", 25 },
		{ "{\"version\":1,\"rules\":[{\"name\":\"a\"},\t]}", "no comma after", 35 },
		{ "{\"version\":1,\"rules\":[1,,2]}", "want a JSON value", 25 },
		{ "{\"version\":1,\"rules\":]}", "want a JSON value", 22 },
		{ "{'version':1}", "double quotes instead of single", 2 },
		{ "{\"version\":1,\"rules\":[{\"name\":'a'}]}", "double quotes", 31 },
		{ "{\xe2\x80\x9cversion\xe2\x80\x9d:1}", "straight double quotes", 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(slips); i++) {
		_cleanup_parsed_ struct parsed p = parse(slips[i].text);

		assert_only_fault(&p, "", slips[i].part);
		assert_int_equal(p.faults.items[0].line, 1);
		assert_int_equal(p.faults.items[0].column, slips[i].column);
	}
}

/* Editors of other systems write one; columns do not count it. */
static void takes_a_byte_order_mark(void **state)
{
	_cleanup_parsed_ struct parsed good = parse("\xef\xbb\xbf{\"version\":1,\"rules\":[]}");
	_cleanup_parsed_ struct parsed bad = parse("\xef\xbb\xbf{\"version\":2,\"rules\":[]}");
	_cleanup_parsed_ struct parsed inside = parse("{\xef\xbb\xbf\"version\":1,\"rules\":[]}");
	_cleanup_parsed_ struct parsed pair =
		parse_rules("{\"name\":\"a\",\"match\":{\"comm\":\"\\uD83d\\ude00\\\\ud800\"}}");

	assert_good(&good);
	assert_only_fault(&bad, "/version", "must be 1");
	assert_int_equal(bad.faults.items[0].column, 12);
	assert_only_fault(&inside, "", "not JSON");
	assert_good(&pair);
}

UNIT_TESTS(rules_syntax)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_slips),
		cmocka_unit_test(takes_a_byte_order_mark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
