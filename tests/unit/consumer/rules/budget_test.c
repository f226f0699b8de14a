/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/rules/budget.h"
#include "shared/tools/macro.h"

#define MINUTE_NS (60 * NSEC_PER_SEC)

static void test_budget(void **state)
{
	const uint64_t start = 1000 * MINUTE_NS;
	struct budget b = {};

	assert_int_equal(budget_spent_ms(&b, start), 0);
	budget_spend(&b, start, 100);
	budget_spend(&b, start + NSEC_PER_SEC, 50);
	budget_spend(&b, start + 30 * MINUTE_NS, 7);
	assert_int_equal(budget_spent_ms(&b, start + 30 * MINUTE_NS), 157);
	assert_int_equal(budget_spent_ms(&b, start + 59 * MINUTE_NS), 157);
	/* An hour later the first minute's is given back, half an hour later the rest. */
	assert_int_equal(budget_spent_ms(&b, start + 60 * MINUTE_NS), 7);
	assert_int_equal(budget_spent_ms(&b, start + 89 * MINUTE_NS), 7);
	assert_int_equal(budget_spent_ms(&b, start + 90 * MINUTE_NS), 0);
	budget_spend(&b, start + 100 * MINUTE_NS, 9);
	/* Asked long after, it has forgotten all. */
	assert_int_equal(budget_spent_ms(&b, start + 5000 * MINUTE_NS), 0);
}

/*
 * A question about a later time counts the seconds spent by then; nothing is forgotten by asking.
 */
static void test_later(void **state)
{
	const uint64_t start = 1000 * MINUTE_NS;
	struct budget b = {};

	budget_spend(&b, start, 100);
	budget_spend(&b, start + 10 * MINUTE_NS, 50);
	assert_int_equal(budget_spent_ms(&b, start + 65 * MINUTE_NS), 50);
	assert_int_equal(budget_spent_ms(&b, start + 500 * MINUTE_NS), 0);
	assert_int_equal(budget_spent_ms(&b, start + 10 * MINUTE_NS), 150);
}

/* What was not used is given back to its minute, as long as that counts. */
static void test_return(void **state)
{
	const uint64_t start = 1000 * MINUTE_NS;
	struct budget b = {};

	budget_spend(&b, start, 100);
	budget_spend(&b, start + MINUTE_NS, 50);
	budget_return(&b, start, 70);
	assert_int_equal(budget_spent_ms(&b, start + MINUTE_NS), 80);
	assert_int_equal(budget_spent_ms(&b, start + 60 * MINUTE_NS), 50);
	budget_return(&b, start, 99);
	assert_int_equal(budget_spent_ms(&b, start + MINUTE_NS), 50);
	budget_spend(&b, start + 61 * MINUTE_NS, 7);
	budget_return(&b, start + MINUTE_NS, 50);
	assert_int_equal(budget_spent_ms(&b, start + 61 * MINUTE_NS), 7);
}

/* Beside the plain definition: all of the last 60 minutes, by the minute. */
static void test_budget_random(void **state)
{
	enum { SPENDS = 400 };
	uint64_t minute[SPENDS], seed = 3, now = 100;
	uint32_t ms[SPENDS];
	struct budget b = {};

	for (size_t i = 0; i < SPENDS; i++) {
		uint64_t wanted = 0;

		now += next_random(&seed) % (i % 50 ? 7 : 90);
		minute[i] = now;
		ms[i] = (uint32_t)(next_random(&seed) % 60000);
		budget_spend(&b, now * MINUTE_NS + next_random(&seed) % MINUTE_NS, ms[i]);
		for (size_t k = 0; k <= i; k++)
			wanted += now - minute[k] < 60 ? ms[k] : 0;
		assert_int_equal(budget_spent_ms(&b, now * MINUTE_NS), wanted);
	}
}

UNIT_TESTS(budget)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_later),
		cmocka_unit_test(test_return),
		cmocka_unit_test(test_budget_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
