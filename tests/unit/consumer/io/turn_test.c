/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/io/turn.h"
#include "shared/tools/clock.h"

static int setup(void **state)
{
	turn_start(0);
	return 0;
}

/* Outside of turns each part has all the time of one. */
static void test_no_turn(void **state)
{
	uint64_t now_ns = clock_mono_ns();

	assert_false(turn_is_over());
	assert_true(turn_until_ns() >= now_ns + TURN_NS);
}

/* The parts of a turn end at the same moment. */
static void test_shared(void **state)
{
	uint64_t start_ns = clock_mono_ns() + NSEC_PER_SEC;

	turn_start(start_ns);
	assert_false(turn_is_over());
	assert_int_equal(turn_until_ns(), start_ns + TURN_NS);
	assert_int_equal(turn_until_ns(), start_ns + TURN_NS);
}

/* What comes when the time is over gets on by a little, and by no more. */
static void test_least(void **state)
{
	uint64_t before_ns = clock_mono_ns(), until_ns;

	turn_start(before_ns - TURN_NS);
	assert_true(turn_is_over());
	until_ns = turn_until_ns();
	assert_in_range(until_ns, before_ns + TURN_LEAST_NS, clock_mono_ns() + TURN_LEAST_NS);
}

UNIT_TESTS(turn)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_no_turn, setup),
		cmocka_unit_test_setup(test_shared, setup),
		cmocka_unit_test_setup(test_least, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
