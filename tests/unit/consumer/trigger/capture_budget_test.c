/* SPDX-License-Identifier: BSD-2-Clause */
/* The budgets of captured time as bounds: for sessions that run at once, and in retry_ms. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <stdio.h>

#include "consumer/trigger/capture_budget.h"
#include "consumer/watch/binding.h"
#include "shared/tools/clock.h"

#define CGROUP(n) ((uint64_t)((n) + 1) << 40)

static struct fake *fake;
static struct watch *watches[FAKE_SLOTS];

static const struct rule *rule_now(void)
{
	return &fake->a.active.set->rules->rules[0];
}

/* A rule of 2 s in the hour, with sessions that want 3 s, on several cgroups of one owner. */
static int setup(void **state)
{
	fake = fake_new();
	if (!fake)
		return 0;
	fake_rules(fake,
		   "{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":\"node\"},"
		   "\"capture\":{\"during_ms\":1500,\"budget_s\":2}}]}");
	for (uint64_t i = 0; i < FAKE_SLOTS; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/unit/budget/%d", (int)i);
		cgroups_learn(&fake->a.cgroups, CGROUP(i), path);
		assert_int_equal(watch_get(&fake->a.watches, CGROUP(i), 0, &watches[i]), 0);
		assert_int_equal(binding_add_cgroup(watches[i], rule_now()), 0);
	}
	return 0;
}

static int teardown(void **state)
{
	if (fake)
		fake_free(fake);
	return 0;
}

/* Returns why it is held back, or NULL with the session. */
static const char *fire(struct watch *w, struct session **ret_session, uint64_t *ret_retry_ms)
{
	const struct trigger trigger = { .watch = w,
					 .rule = rule_now(),
					 .reason = { .kind = TRIGGER_REQUEST, .pid = 1 } };
	struct trigger_held held = {};

	if (trigger_fire(&fake->a.triggers, &trigger, ret_session, &held) == 0)
		return NULL;
	*ret_retry_ms = held.retry_ms;
	return held.reason;
}

static uint64_t left_ms(uint64_t at_ns)
{
	const struct capture_budget budget = { fake->a.active.set, &fake->a.shares, rule_now(),
					       watches[0]->owner };
	const struct capture_limit *limit;

	return capture_budget_left_ms(&budget, at_ns, &limit);
}

/* One request on all cgroups: together the sessions are no longer than the budget. */
static void test_sessions_at_once(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct session *first, *second, *none;
	uint64_t retry_ms;

	if (!fake)
		skip();
	assert_null(fire(watches[0], &first, &retry_ms));
	assert_int_equal(first->during_ms, 1500);
	assert_null(fire(watches[1], &second, &retry_ms));
	assert_int_equal(second->during_ms, 500);
	assert_int_equal(second->end_ns - second->result->start_ns, 500 * NSEC_PER_MSEC);
	line = fake_last(fake, "session.start");
	assert_non_null(strstr(fake_text(line, "during_reason"), "the rule's budget"));
	assert_string_equal(fire(watches[2], &none, &retry_ms), "budget_rule");
	assert_string_equal(fire(watches[3], &none, &retry_ms), "budget_rule");
}

/* What a session did not use, because it ended early, is given back. */
static void test_given_back(void **state)
{
	struct session *first;
	uint64_t retry_ms, used_ms, now_ns = clock_mono_ns();

	if (!fake)
		skip();
	assert_null(fire(watches[0], &first, &retry_ms));
	assert_int_equal(left_ms(now_ns), 500);
	session_end(&fake->a.sessions, first);
	used_ms = (first->result->stop_ns - first->result->start_ns) / NSEC_PER_MSEC;
	triggers_step(&fake->a.triggers, clock_mono_ns() + NSEC_PER_SEC);
	assert_int_equal(left_ms(now_ns), 2000 - used_ms);
}

/* retry_ms is true: not a moment before, and then it may. */
static void test_retry(void **state)
{
	uint64_t retry_ms = 0, now_ns = clock_mono_ns(), minute_ns = 60 * NSEC_PER_SEC, at_ns;
	struct session *none;

	if (!fake || now_ns < 60 * minute_ns)
		skip();
	budget_spend(&fake->a.active.set->budgets[0], now_ns - 50 * minute_ns, 50);
	budget_spend(&fake->a.active.set->budgets[0], now_ns - 20 * minute_ns, 950);
	budget_spend(&fake->a.active.set->budgets[0], now_ns, 1000);
	assert_string_equal(fire(watches[0], &none, &retry_ms), "budget_rule");
	/* What is given back in ten minutes is no session; forty minutes from now it is. */
	at_ns = now_ns + retry_ms * NSEC_PER_MSEC;
	assert_in_range(retry_ms, 39 * 60000 - 1000, 40 * 60000 + 1000);
	assert_true(left_ms(at_ns + NSEC_PER_SEC) >= CAPTURE_BUDGET_LEAST_MS);
	assert_true(left_ms(at_ns - NSEC_PER_SEC) < CAPTURE_BUDGET_LEAST_MS);
}

/* The same for all rules' budget, and for an owner that has had half of it. */
static void test_retry_of_owner(void **state)
{
	uint64_t retry_ms = 0, now_ns = clock_mono_ns(), all_ms;
	struct owner *other;
	struct session *none;

	if (!fake)
		skip();
	all_ms = fake->a.active.set->rules->budget_s * MSEC_PER_SEC;
	other = shares_owner(&fake->a.shares, "uid 1000");
	shares_captured(&fake->a.shares, other, now_ns, 1);
	shares_captured(&fake->a.shares, watches[0]->owner, now_ns, (uint32_t)all_ms / 2);
	assert_string_equal(fire(watches[0], &none, &retry_ms), "budget_owner");
	assert_in_range(retry_ms, 59 * 60000 - 1000, 60 * 60000 + 1000);
	shares_put(&fake->a.shares, other);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(capture_budget)
{
	const struct CMUnitTest tests[] = {
		EACH(test_sessions_at_once),
		EACH(test_given_back),
		EACH(test_retry),
		EACH(test_retry_of_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
