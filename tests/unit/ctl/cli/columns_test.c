/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/cli/columns.h"
#include "ctl/cli/terminal.h"
#include "shared/json/json_reader.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static void put_twice(const struct json_node *object, FILE *out)
{
	fprintf(out, "%d", 2 * (int)json_node_i64(json_node_get(object, "n")));
}

static const struct column columns[] = {
	{ "NAME", "{name}", .rest = "{others:n} more" },
	{ "TWICE", .put = put_twice },
	{ "SPARE", "long enough: {n:n}", .flags = COLUMN_SPARE | COLUMN_RIGID },
	{ "ERRORS", "{errors:n}", .flags = COLUMN_ZEROS },
};

/* The table of an array of objects. */
static char *print_table(const char *json)
{
	_cleanup_(text_table_done) struct text_table table;
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	struct json_fault fault;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(json_tree_read(json, strlen(json), JSON_READER_NESTING, &tree, &fault), 0);
	columns_begin(&table, columns, ARRAY_SIZE(columns));
	for (const struct json_node *one = json_node_first(tree.nodes); one;
	     one = json_node_next(one))
		columns_add(&table, columns, one);
	assert_int_equal(text_table_print(&table, 0, out), 0);
	fclose(out);
	return text;
}

static void test_rows(void **state)
{
	_cleanup_free_ char *errors = print_table("[{\"name\":\"vda\",\"n\":3,\"errors\":1},"
						  "{\"others\":7,\"name\":\"x\"}]");
	_cleanup_free_ char *none = print_table("[{\"name\":\"vda\",\"n\":3,\"errors\":0}]");
	_cleanup_free_ char *heads = print_table("[]");

	assert_string_equal(errors, "NAME    TWICE  SPARE           ERRORS\n"
				    "vda     6      long enough: 3  1\n"
				    "7 more  0      long enough: 0  0\n");
	assert_string_equal(none, "NAME  TWICE  SPARE\n"
				  "vda   6      long enough: 3\n");
	assert_string_equal(heads, "NAME  TWICE  SPARE\n");
}

/* Where lines are short, a spare column goes, and none of zeros comes back. */
static void test_narrow(void **state)
{
	_cleanup_free_ char *narrow = NULL;

	terminal_use(&(struct terminal){ .columns = 20 });
	narrow = print_table("[{\"name\":\"vda\",\"n\":3}]");
	terminal_use(&(struct terminal){ 0 });
	assert_string_equal(narrow, "NAME  TWICE\nvda   6\n");
}

UNIT_TESTS(columns)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_narrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
