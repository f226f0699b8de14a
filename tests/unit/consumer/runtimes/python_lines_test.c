/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of instructions by the line tables of CPython, against CPython's own answers. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/runtimes/python_lines.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/runtimes/python_lines_cases.h"

static int32_t find(const struct lines_case *c, size_t bytes, int64_t at)
{
	struct python_table table = { (const uint8_t *)c->table, bytes, bytes < c->table_bytes };

	return python_lines_find(c->version, &table, c->first_line, at);
}

/* Every instruction of every version has the line that CPython gives. */
static void lines_are_cpythons(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(lines_cases); i++) {
		const struct lines_case *c = &lines_cases[i];

		for (size_t k = 0; k < c->count; k++) {
			int64_t end = k + 1 < c->count ? c->lines[k + 1].at : c->code_bytes;

			for (int64_t at = c->lines[k].at; at < end; at += 2)
				assert_int_equal(find(c, c->table_bytes, at), c->lines[k].line);
		}
		assert_int_equal(find(c, c->table_bytes, -2), c->first_line);
		assert_int_equal(find(c, c->table_bytes, -1), c->first_line);
	}
}

/* A table that was copied in part gives right lines, or none. */
static void cut_tables_give_no_wrong_line(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(lines_cases); i++) {
		const struct lines_case *c = &lines_cases[i];

		for (size_t bytes = 0; bytes < c->table_bytes; bytes++)
			for (int64_t at = 0; at < c->code_bytes; at += 2) {
				int32_t line = find(c, bytes, at);

				if (line)
					assert_int_equal(line, find(c, c->table_bytes, at));
			}
	}
}

/* Behind the end of the code there is no line, but where the format has no end. */
static void no_line_behind_the_end(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(lines_cases); i++)
		if (lines_cases[i].version >= 0x030a)
			assert_int_equal(find(&lines_cases[i], lines_cases[i].table_bytes,
					      lines_cases[i].code_bytes),
					 0);
}

/* Any bytes are read to their end and no further, and give no negative line. */
static void any_bytes(void **state)
{
	uint32_t random = 1;
	uint8_t bytes[64];

	for (int round = 0; round < 20000; round++) {
		struct python_table table = { bytes, (size_t)(round % 65), round & 1 };

		for (size_t i = 0; i < sizeof(bytes); i++) {
			random = random * 1103515245 + 12345;
			bytes[i] = (uint8_t)(random >> 16);
		}
		for (uint32_t version = 0x0307; version <= 0x030d; version++)
			assert_true(python_lines_find(version, &table, INT32_MAX - 5, round) >= 0);
	}
}

UNIT_TESTS(python_lines)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_cpythons),
		cmocka_unit_test(cut_tables_give_no_wrong_line),
		cmocka_unit_test(no_line_behind_the_end),
		cmocka_unit_test(any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
