/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <string.h>

#include "ctl/client/paths.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"

static void test_paths(void **state)
{
	static const char text[] = "{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":5},\"n\":7}}},\"none\":null,"
				   "\"word\":\"x\"}";
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	struct json_fault fault;

	assert_int_equal(json_tree_read(text, strlen(text), 32, &tree, &fault), 0);
	assert_int_equal(paths_number(tree.nodes, "a.b.c.n"), 7);
	assert_ptr_equal(paths_get(tree.nodes, "a.b"),
			 json_node_get(json_node_get(tree.nodes, "a"), "b"));
	assert_true(json_node_equals(paths_get(tree.nodes, "word"), "x"));
	/* It leads nowhere, to a value that is no object, or deeper than a path goes. */
	assert_null(paths_get(tree.nodes, "a.x.c"));
	assert_null(paths_get(tree.nodes, "word.x"));
	assert_null(paths_get(tree.nodes, "none"));
	assert_null(paths_get(tree.nodes, "a.b.c.d.e"));
	assert_null(paths_get(NULL, "a"));
	/* What is no number counts as none. */
	assert_int_equal(paths_number(tree.nodes, "word"), 0);
	assert_int_equal(paths_number(tree.nodes, "a"), 0);
	assert_int_equal(paths_number(tree.nodes, "x.y"), 0);
}

UNIT_TESTS(paths)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
