/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "consumer/unwind/compile/unwind_table.h"

static uint16_t linear(const struct unwind_table *t, uint32_t pc)
{
	uint16_t rule = UNWIND_RULE_NONE;

	for (uint32_t i = 0; i < t->row_count && t->rows[i].pc <= pc; i++)
		rule = t->rows[i].rule;
	return rule;
}

static void push(struct unwind_table *t, uint32_t pc, uint16_t rule)
{
	assert_int_equal(unwind_table_push(t, pc, rule), 0);
}

/* What every table must hold: the index leads to the same row as looking at all of them. */
static void check(const struct unwind_table *t, uint32_t end)
{
	for (uint32_t pc = 0; pc < end; pc++)
		assert_int_equal(unwind_table_find(t, t->base + pc), linear(t, pc));
	for (uint32_t i = 0; i < t->page_count; i++) {
		assert_true(UNWIND_PAGE_COUNT(t->pages[i]) >= 1);
		assert_true(UNWIND_PAGE_COUNT(t->pages[i]) <= UNWIND_PAGE_BYTES);
		assert_true(UNWIND_PAGE_FIRST(t->pages[i]) + UNWIND_PAGE_COUNT(t->pages[i]) <=
			    t->row_count);
	}
}

static void test_find(void **state)
{
	struct unwind_table t = { .base = 0x400000 };

	push(&t, 0, 0);
	push(&t, 0x10, 5);
	push(&t, 0x10 + 1, 5); /* equal to its neighbour: no row */
	push(&t, 0x100, 6);    /* a page's first byte */
	push(&t, 0x101, 1);
	push(&t, 0x5ff, 8); /* pages without a row, then a last byte */
	push(&t, 0x700, 0);
	assert_int_equal(unwind_table_finish(&t), 0);
	assert_int_equal(t.row_count, 6);
	assert_int_equal(t.page_count, 8);
	assert_int_equal(t.counts.text_bytes, 0x6f0);
	assert_int_equal(t.counts.unsupported_bytes, 0x5ff - 0x101);
	check(&t, 0x800);
	assert_int_equal(unwind_table_find(&t, 0x400000 - 1), UNWIND_RULE_NONE);
	assert_int_equal(unwind_table_find(&t, 0x400000 + 0x800), UNWIND_RULE_NONE);
	assert_int_equal(unwind_table_find(&t, UINT64_MAX), UNWIND_RULE_NONE);
	assert_int_equal(unwind_table_bytes(&t), 6 * 8 + 8 * 4);
	unwind_table_done(&t);
}

/* A row for each byte of two pages, and random ones. */
static void test_full_pages(void **state)
{
	struct unwind_table t = { 0 };

	for (uint32_t i = 0; i < 2 * UNWIND_PAGE_BYTES; i++)
		push(&t, i, (uint16_t)(i % 2 + 3));
	push(&t, 2 * UNWIND_PAGE_BYTES, UNWIND_RULE_NONE); /* as every compiled table ends */
	assert_int_equal(unwind_table_finish(&t), 0);
	assert_int_equal(UNWIND_PAGE_COUNT(t.pages[1]), UNWIND_PAGE_BYTES);
	check(&t, 3 * UNWIND_PAGE_BYTES);
	unwind_table_done(&t);
	for (unsigned int seed = 0; seed < 50; seed++) {
		srandom(seed);
		push(&t, 0, 3);
		for (uint32_t pc = 1; pc < 5000; pc += 1 + (uint32_t)random() % (seed * 10 + 1))
			push(&t, pc, (uint16_t)(random() % 4));
		push(&t, 6000, UNWIND_RULE_NONE);
		assert_int_equal(unwind_table_finish(&t), 0);
		check(&t, 5500);
		unwind_table_done(&t);
	}
}

/* Room is made as asked, and at the wall as much as there may be. */
static void test_grow(void **state)
{
	struct unwind_table t = { 0 };

	assert_int_equal(unwind_table_grow(&t, 5000), 0);
	assert_in_range(t.row_space, 5000, 10000);
	assert_int_equal(unwind_table_grow(&t, UNWIND_ROWS_MAX), 0);
	assert_int_equal(t.row_space, UNWIND_ROWS_MAX);
	push(&t, 0, 3);
	assert_int_equal(unwind_table_grow(&t, UNWIND_ROWS_MAX), -EOVERFLOW);
	assert_int_equal(t.row_space, UNWIND_ROWS_MAX);
	unwind_table_done(&t);
}

static void test_wall(void **state)
{
	struct unwind_table t = { 0 };

	for (uint32_t i = 0; i < UNWIND_ROWS_MAX; i++)
		if (unwind_table_push(&t, i, i & 1) != 0)
			fail();
	assert_int_equal(unwind_table_push(&t, UNWIND_ROWS_MAX, 7), -EOVERFLOW);
	assert_int_equal(unwind_table_finish(&t), 0);
	assert_int_equal(unwind_table_find(&t, UNWIND_ROWS_MAX - 1), 1);
	assert_int_equal(unwind_table_find(&t, UNWIND_ROWS_MAX - 2), 0);
	unwind_table_done(&t);
}

UNIT_TESTS(unwind_table)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_full_pages),
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_wall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
