/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>

#include "consumer/unwind/compile/unwind_rules.h"

static struct unwind_rule number(int i)
{
	return (struct unwind_rule){ .cfa = UNWIND_CFA_SP, .cfa_offset = i };
}

static uint16_t add(struct unwind_rules *r, int i)
{
	uint16_t index;

	assert_int_equal(unwind_rules_add(r, number(i), UNWIND_RULES_MAX, &index), 0);
	assert_int_equal(r->rules[index].cfa_offset, i);
	return index;
}

static void test_first(void **state)
{
	struct unwind_rules r;
	uint16_t index = 99;

	assert_int_equal(unwind_rules_init(&r), 0);
	assert_int_equal(r.count, 3);
	assert_int_equal(r.rules[UNWIND_RULE_NONE].cfa, UNWIND_CFA_NONE);
	assert_int_equal(r.rules[UNWIND_RULE_UNSUPPORTED].cfa, UNWIND_CFA_UNSUPPORTED);
	assert_int_equal(unwind_rules_add(&r, (struct unwind_rule){ .cfa = UNWIND_CFA_END },
					  UNWIND_RULES_MAX, &index),
			 0);
	assert_int_equal(index, UNWIND_RULE_END);
	unwind_rules_done(&r);
}

static void test_same_is_same(void **state)
{
	struct unwind_rules r;
	uint16_t eight;

	assert_int_equal(unwind_rules_init(&r), 0);
	eight = add(&r, 8);
	assert_int_equal(add(&r, 16), eight + 1);
	assert_int_equal(add(&r, 8), eight);
	assert_int_equal(r.count, 5);
	unwind_rules_done(&r);
}

/* Full at the limit, and at the dictionary's own; what is there is still found. */
static void test_walls(void **state)
{
	struct unwind_rules r;
	uint16_t index;

	assert_int_equal(unwind_rules_init(&r), 0);
	for (int i = 0; i < 10; i++)
		add(&r, i);
	assert_int_equal(unwind_rules_add(&r, number(10), 13, &index), -ENOSPC);
	assert_int_equal(unwind_rules_add(&r, number(9), 13, &index), 0);
	for (int i = 10; r.count < UNWIND_RULES_MAX; i++)
		add(&r, i);
	assert_int_equal(unwind_rules_add(&r, number(-1), UINT32_MAX, &index), -ENOSPC);
	for (int i = 0; i < UNWIND_RULES_MAX - 3; i++)
		assert_int_equal(add(&r, i), i + 3);
	unwind_rules_done(&r);
}

/* After a rewind the older ones are found, and the newer ones get the same numbers again. */
static void test_rewind(void **state)
{
	struct unwind_rules r;

	assert_int_equal(unwind_rules_init(&r), 0);
	for (int i = 0; i < UNWIND_RULES_MAX - 3; i++)
		add(&r, i);
	unwind_rules_rewind(&r, 1003);
	assert_int_equal(r.count, 1003);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(add(&r, i), i + 3);
	assert_int_equal(r.count, 1003);
	assert_int_equal(add(&r, 5000), 1003);
	unwind_rules_done(&r);
}

UNIT_TESTS(unwind_rules)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_same_is_same),
		cmocka_unit_test(test_walls),
		cmocka_unit_test(test_rewind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
