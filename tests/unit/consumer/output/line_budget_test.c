/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdio.h>
#include <string.h>

#include "consumer/output/line_budget.h"
#include "shared/tools/macro.h"

#define LINES	  100
#define MINUTE_NS (60 * NSEC_PER_SEC)

static struct line_budget budget;

static int setup(void **state)
{
	line_budget_init(&budget, LINES);
	return 0;
}

static int teardown(void **state)
{
	line_budget_done(&budget);
	return 0;
}

/* How many of `count` lines were granted. */
static unsigned int take(const char *rule, uint64_t owner, unsigned int count)
{
	unsigned int granted = 0;

	for (unsigned int i = 0; i < count; i++)
		granted += line_budget_take(&budget, rule, owner, LINE_MATCH);
	return granted;
}

/* Each has half of the others' rest, and all together never more than the budget. */
static void test_halves(void **state)
{
	unsigned int all = 0;

	assert_int_equal(take("api", 1, 1000), 50);
	assert_int_equal(take("api", 2, 1000), 25);
	assert_int_equal(take("api", 3, 5), 5);
	assert_int_equal(take("api", 1, 10), 0);
	assert_int_equal(take("other", 1, 1000), 50);
	for (uint64_t owner = 4; owner < 1000; owner++)
		all += take("api", owner, 1000);
	assert_int_equal(all, LINES - 80);
	assert_false(line_budget_has_room(&budget, "api", 5000));
	assert_true(line_budget_has_room(&budget, "third", 5000));
}

struct told {
	unsigned int rules;
	uint64_t matches, exits;
	char name[RULE_NAME_BYTES];
};

static void tell(void *context, const struct line_rule *rule)
{
	struct told *told = context;

	told->rules++;
	told->matches += rule->left_out[LINE_MATCH];
	told->exits += rule->left_out[LINE_EXIT];
	memcpy(told->name, rule->name, sizeof(told->name));
}

/* At the end of the minute each rule's loss is reported once; then all begins anew. */
static void test_minute(void **state)
{
	struct told told = { 0 };

	line_budget_turn(&budget, 7 * MINUTE_NS + 1, false, tell, &told);
	assert_int_equal(line_budget_rest_ns(&budget, 7 * MINUTE_NS + 1), MINUTE_NS - 1);
	take("api", 1, 60);
	take("quiet", 1, 3);
	line_budget_leave_out(&budget, "api", LINE_EXIT);
	line_budget_turn(&budget, 8 * MINUTE_NS - 1, false, tell, &told);
	assert_int_equal(told.rules, 0);
	line_budget_turn(&budget, 8 * MINUTE_NS, false, tell, &told);
	assert_int_equal(told.rules, 1);
	assert_string_equal(told.name, "api");
	assert_int_equal(told.matches, 10);
	assert_int_equal(told.exits, 1);
	assert_int_equal(budget.left_out, 11);
	assert_int_equal(take("api", 1, 1), 1);
	line_budget_turn(&budget, 9 * MINUTE_NS, false, tell, &told);
	assert_int_equal(told.rules, 1);
}

/* The end comes within a minute too. */
static void test_end(void **state)
{
	struct told told = { 0 };

	line_budget_turn(&budget, MINUTE_NS, false, tell, &told);
	take("", 1, 60);
	line_budget_turn(&budget, MINUTE_NS + 1, true, tell, &told);
	assert_int_equal(told.rules, 1);
	assert_string_equal(told.name, "");
	assert_int_equal(told.matches, 10);
}

static void test_names(void **state)
{
	assert_string_equal(line_budget_kind_name(LINE_MATCH), "process.match");
	assert_string_equal(line_budget_kind_name(LINE_WATCH_STOP), "watch.stop");
	assert_int_not_equal(idmap_text_key("a"), idmap_text_key("b"));
	assert_int_not_equal(idmap_text_key(""), 0);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(line_budget)
{
	const struct CMUnitTest tests[] = {
		EACH(test_halves),
		EACH(test_minute),
		EACH(test_end),
		EACH(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
