/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/waits/held_waits.h"

#include "shared/tools/macro.h"
#include "tests/unit/runner/unit.h"

static const struct stack stack = { .tgid = 7 };

static void add(struct held_waits *h, uint32_t tid, uint32_t holder)
{
	held_waits_add(h, &(struct held_wait){ .stack = &stack,
					       .address = 0x1000 + holder,
					       .ns = 10,
					       .tid = tid,
					       .holder = holder });
}

static void test_none(void **state)
{
	struct held_waits h = { 0 };
	const struct held_wait *cycle[HELD_WAITS_CYCLE];

	assert_int_equal(held_waits_find_cycle(&h, cycle), 0);
	/* A long queue, and two threads whose holder runs. */
	for (uint32_t tid = 100; tid > 2; tid--)
		add(&h, tid, tid - 1);
	add(&h, 200, 900);
	add(&h, 201, 900);
	assert_int_equal(held_waits_find_cycle(&h, cycle), 0);
	assert_int_equal(held_waits_deadlocked_ns(&h), 0);
	assert_false(held_waits_is_deadlocked(&h, 7, 0x1000 + 900));
	held_waits_done(&h);
}

/* The largest of several circles, with the waits for it; the others are not marked. */
static void test_cycle(void **state)
{
	struct held_waits h = { 0 };
	const struct held_wait *cycle[HELD_WAITS_CYCLE];

	add(&h, 5, 6);
	add(&h, 6, 5);
	add(&h, 30, 31);
	add(&h, 31, 32);
	add(&h, 32, 30);
	add(&h, 40, 31);
	add(&h, 41, 40);
	add(&h, 50, 999);
	assert_int_equal(held_waits_find_cycle(&h, cycle), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(cycle[i]->holder, cycle[(i + 1) % 3]->tid);
	assert_int_equal(held_waits_deadlocked_ns(&h), 50);
	assert_true(held_waits_is_deadlocked(&h, 7, 0x1000 + 40));
	assert_false(held_waits_is_deadlocked(&h, 8, 0x1000 + 40));
	assert_false(held_waits_is_deadlocked(&h, 7, 0x1000 + 6));
	assert_false(held_waits_is_deadlocked(&h, 7, 0));
	held_waits_done(&h);
}

static void test_itself(void **state)
{
	struct held_waits h = { 0 };
	const struct held_wait *cycle[HELD_WAITS_CYCLE];

	add(&h, 5, 5);
	add(&h, 6, 5);
	assert_int_equal(held_waits_find_cycle(&h, cycle), 1);
	assert_int_equal(cycle[0]->tid, 5);
	assert_int_equal(held_waits_deadlocked_ns(&h), 20);
	held_waits_done(&h);
}

/* More threads in a circle than are named. */
static void test_many(void **state)
{
	struct held_waits h = { 0 };
	const struct held_wait *cycle[HELD_WAITS_CYCLE];

	for (uint32_t i = 0; i < 5000; i++)
		add(&h, i + 1, (i + 1) % 5000 + 1);
	assert_int_equal(held_waits_find_cycle(&h, cycle), 5000);
	assert_int_equal(cycle[1]->tid, cycle[0]->holder);
	held_waits_done(&h);
}

UNIT_TESTS(held_waits)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_cycle),
		cmocka_unit_test(test_itself),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
