/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <string.h>

#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"

#define NESTING 8

static struct json_tree tree;

static const struct json_node *read_text(const char *text)
{
	struct json_fault fault;

	json_tree_done(&tree);
	assert_int_equal(json_tree_read(text, strlen(text), NESTING, &tree, &fault), 0);
	return tree.nodes;
}

static int release(void **state)
{
	json_tree_done(&tree);
	return 0;
}

static void knows_kinds(void **state)
{
	const struct json_node *root = read_text("[null,true,1,1.5,\"a\",[],{}]");
	int kind = JSON_NULL;

	assert_true(json_node_is(root, JSON_ARRAY));
	assert_int_equal(json_node_elements(root), 7);
	for (const struct json_node *n = json_node_first(root); n; n = json_node_next(n)) {
		assert_true(json_node_is(n, (enum json_kind)kind++));
		assert_ptr_equal(json_node_parent(n), root);
	}
	assert_int_equal(kind, JSON_OBJECT + 1);
	assert_null(json_node_parent(root));
}

/* Whatever is missing is asked like everything else. */
static void accepts_missing_members(void **state)
{
	assert_false(json_node_is(NULL, JSON_NULL));
	assert_false(json_node_equals(NULL, ""));
	assert_null(json_node_string(NULL));
	assert_false(json_node_is_true(NULL));
	assert_true(json_node_i64(NULL) == 0 && json_node_u64(NULL) == 0);
	assert_true(json_node_double(NULL) == 0);
	assert_null(json_node_parent(NULL));
	assert_null(json_node_first(NULL));
	assert_null(json_node_next(NULL));
	assert_int_equal(json_node_elements(NULL), 0);
	assert_false(json_node_has_key(NULL, ""));
	assert_null(json_node_member(NULL, "a"));
	assert_null(json_node_get(NULL, "a"));
}

static void finds_members(void **state)
{
	const struct json_node *root = read_text("{\"a\":1,\"\":2,\"b\":null,\"c\":{\"a\":3}}");

	assert_int_equal(json_node_u64(json_node_get(root, "a")), 1);
	assert_int_equal(json_node_u64(json_node_get(root, "")), 2);
	assert_null(json_node_get(root, "b"));
	assert_true(json_node_is(json_node_member(root, "b"), JSON_NULL));
	assert_null(json_node_member(root, "d"));
	assert_int_equal(json_node_u64(json_node_get(json_node_get(root, "c"), "a")), 3);
	assert_null(json_node_get(json_node_get(root, "a"), "a"));
	assert_null(json_node_first(json_node_get(root, "a")));
}

static void shows_the_last_of_one_key(void **state)
{
	const struct json_node *root = read_text("{\"a\":1,\"b\":2,\"a\":3,\"\\u0061\":[4,5]}");
	const struct json_node *first = json_node_first(root);

	assert_true(json_node_has_key(first, "b"));
	assert_true(json_node_is(json_node_get(root, "a"), JSON_ARRAY));
	assert_ptr_equal(json_node_next(first), json_node_get(root, "a"));
	assert_null(json_node_next(json_node_next(first)));
	assert_int_equal(json_node_u64(json_node_first(json_node_get(root, "a"))), 4);
}

static void reads_numbers_to_their_limits(void **state)
{
	static const struct {
		const char *text;
		int64_t i64;
		uint64_t u64;
		double real;
	} rows[] = {
		{ "0", 0, 0, 0 },
		{ "-7", -7, 0, -7 },
		{ "1.75", 1, 1, 1.75 },
		{ "25e-1", 25, 25, 2.5 },
		{ "9223372036854775808", INT64_MAX, 1ULL << 63, 9223372036854775808.0 },
		{ "-9223372036854775809", INT64_MIN, 0, -9223372036854775809.0 },
		{ "18446744073709551616", INT64_MAX, UINT64_MAX, 18446744073709551616.0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct json_node *n = read_text(rows[i].text);

		assert_true(json_node_i64(n) == rows[i].i64);
		assert_true(json_node_u64(n) == rows[i].u64);
		assert_true(json_node_double(n) == rows[i].real);
		assert_string_equal(n->text, rows[i].text);
	}
	assert_int_equal(json_node_i64(read_text("\"7\"")), 0);
}

static void compares_whole_strings(void **state)
{
	const struct json_node *n = read_text("\"a\\u0000b\"");

	assert_false(json_node_equals(n, "a"));
	assert_int_equal(n->bytes, 3);
	assert_memory_equal(json_node_string(n), "a\0b", 4);
	assert_true(json_node_equals(read_text("\"\\u00e4\""), "\xc3\xa4"));
	assert_true(json_node_is_true(read_text("true")));
	assert_false(json_node_is_true(read_text("false")));
	assert_false(json_node_is_true(read_text("\"true\"")));
	assert_null(json_node_string(read_text("1")));
}

UNIT_TESTS(json_node)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_kinds),
		cmocka_unit_test(accepts_missing_members),
		cmocka_unit_test(finds_members),
		cmocka_unit_test(shows_the_last_of_one_key),
		cmocka_unit_test(reads_numbers_to_their_limits),
		cmocka_unit_test(compares_whole_strings),
	};

	return cmocka_run_group_tests(tests, NULL, release);
}
