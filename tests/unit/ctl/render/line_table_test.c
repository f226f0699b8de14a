/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <string.h>

#include "ctl/render/line_table.h"
#include "shared/json/json_reader.h"

static struct text_table table;

static void expect(const char *cell)
{
	assert_string_equal(table.cells[table.count - 1], cell);
}

static void test_cells(void **state)
{
	static const char text[] = "{\"waits\":12,\"part\":{\"p50\":4200000,\"p99\":null}}";
	struct json_tree tree = { 0 };
	struct json_fault fault;
	const struct json_node *line, *part;

	assert_int_equal(json_tree_read(text, strlen(text), JSON_READER_NESTING, &tree, &fault), 0);
	text_table_init(&table, 1);
	line = tree.nodes;
	part = json_node_get(line, "part");
	assert_int_equal(line_table_read(line, "waits"), 12);
	assert_int_equal(line_table_read(line, "none"), 0);
	assert_int_equal(line_table_read(NULL, "waits"), 0);
	line_table_number(&table, 12);
	expect("12");
	line_table_time(&table, 4200000);
	expect("4 ms");
	line_table_bound(&table, part, "p50");
	expect("4 ms");
	line_table_bound(&table, part, "p99");
	expect("longer");
	line_table_bound(&table, NULL, "p99");
	expect("");
	text_table_done(&table);
	json_tree_done(&tree);
}

UNIT_TESTS(line_table)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
