/* SPDX-License-Identifier: BSD-2-Clause */
/* The owners of lines about processes: by place, and by user within it. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include "consumer/output/event_budget.h"
#include "consumer/output/line_budget.h"

#define FLOODER 1001
#define OTHER	1002

static struct fake *fake;

static int setup(void **state)
{
	fake = fake_new();
	return 0;
}

static int teardown(void **state)
{
	if (fake)
		fake_free(fake);
	fake = NULL;
	return 0;
}

/* So many lines the user may write in this minute. */
static uint64_t lines_of(uint32_t uid, uint64_t most)
{
	const struct event_about about = { .uid = uid };
	uint64_t n = 0;

	while (n < most && event_budget_take(&fake->a.budget, &about, LINE_MATCH))
		n++;
	return n;
}

static void test_users(void **state)
{
	uint64_t first, second;

	if (!fake) {
		skip();
		return;
	}
	fake->a.budget.lines.max = 8;
	first = lines_of(FLOODER, 100);
	second = lines_of(OTHER, 100);
	assert_in_range(first, 4, 8); /* twice that where the minute turns meanwhile */
	assert_in_range(second, 2, 8);
	assert_true(fake->a.budget.lines.left_out >= 2);
}

UNIT_TESTS(event_budget)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(test_users, setup,
									    teardown) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
