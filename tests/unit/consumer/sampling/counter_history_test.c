/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/sampling/counter_history.h"

static void add(struct counter_history *h, uint64_t time_ns)
{
	const struct slot_counters sum = { .attempted = 10 * time_ns };

	counter_history_add(h, time_ns, &sum);
}

static void test_empty(void **state)
{
	const struct counter_history h = {};

	assert_true(counter_history_wants(&h, 0));
	assert_null(counter_history_until(&h, 5));
	assert_null(counter_history_from(&h, 0));
}

static void test_around(void **state)
{
	struct counter_history h = {};

	for (uint64_t t = 10; t <= 30; t += 10)
		add(&h, t);
	assert_int_equal(counter_history_until(&h, 25)->time_ns, 20);
	assert_int_equal(counter_history_until(&h, 20)->time_ns, 20);
	assert_int_equal(counter_history_until(&h, 99)->sum.attempted, 300);
	/* Nothing is older: the oldest stands for it. */
	assert_int_equal(counter_history_until(&h, 9)->time_ns, 10);
	assert_int_equal(counter_history_from(&h, 0)->time_ns, 10);
	assert_int_equal(counter_history_from(&h, 20)->time_ns, 20);
	assert_int_equal(counter_history_from(&h, 21)->time_ns, 30);
	assert_null(counter_history_from(&h, 31));
}

static void test_bound(void **state)
{
	struct counter_history h = {};

	for (uint64_t t = 1; t <= 3 * COUNTER_POINTS; t++)
		add(&h, t);
	assert_int_equal(h.count, COUNTER_POINTS);
	assert_int_equal(counter_history_from(&h, 0)->time_ns, 2 * COUNTER_POINTS + 1);
	assert_int_equal(counter_history_until(&h, 0)->time_ns, 2 * COUNTER_POINTS + 1);
}

/* The points reach back over the longest pre-roll of a rule, 30 s. */
static void test_apart(void **state)
{
	struct counter_history h = {};

	for (uint64_t t = NSEC_PER_SEC; t < 60 * NSEC_PER_SEC; t += 50 * NSEC_PER_MSEC)
		if (counter_history_wants(&h, t))
			add(&h, t);
	assert_true(counter_history_from(&h, 0)->time_ns <= 29 * NSEC_PER_SEC);
}

UNIT_TESTS(counter_history)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_around),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
