/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about the activity of threads over time, against their schema. */
#include "consumer/evidence/waits/session_timeline.h"

#include <stdio.h>
#include <string.h>

#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

#define MS(s, ms) ((s)->start_ns + (uint64_t)((ms) * (int64_t)NSEC_PER_MSEC))

static struct session_result *new_session(void)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");

	s->timeline = timeline_new(s->start_ns, 5000, 3000);
	assert_non_null(s->timeline);
	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	return s;
}

static struct timeline_pool *pool_of(struct session_result *s, uint32_t tgid, const char *comm)
{
	struct stack_sample h = { .tgid = tgid, .start_ns = 5 };

	snprintf(h.comm, sizeof(h.comm), "%s", comm);
	return timeline_pool(s->timeline, &h);
}

static int64_t slot_of(json_object *line, const char *key, size_t slot)
{
	json_object *row = json_object_object_get(line, key);

	assert_int_equal(json_object_array_length(row), number(line, "slots"));
	return json_object_get_int64(json_object_array_get_idx(row, slot));
}

/* The one that did most first; idle time does nothing for a pool. */
static void test_lines(void **state)
{
	struct session_result *s = new_session();
	struct timeline_pool *rest = pool_of(s, 8, "listener"), *busy = pool_of(s, 7, "w\x01rk-3");
	json_object *all, *line;

	timeline_add(s->timeline, rest, ACCOUNT_IDLE, MS(s, -5000), MS(s, 3000));
	timeline_add(s->timeline, busy, ACCOUNT_RUNNING, MS(s, 0), MS(s, 50));
	timeline_add(s->timeline, busy, ACCOUNT_LOCK, MS(s, 50), MS(s, 251));
	timeline_look(s->timeline, MS(s, 60));
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 3);
	line = at(all, 0);
	assert_string_equal(get(line, "type"), "timeline");
	assert_int_equal(number(line, "pid"), 7);
	assert_int_equal(number(line, "slot_ms"), 100);
	assert_int_equal(number(line, "slots"), 80);
	assert_int_equal(number(line, "slots_before"), 50);
	assert_int_equal(number(line, "unit_ms"), 1);
	assert_int_equal(slot_of(line, "running", 50), 50);
	assert_int_equal(slot_of(line, "looks", 50), 1);
	assert_int_equal(slot_of(line, "looks", 49), 0);
	line = json_object_object_get(line, "blocked");
	assert_int_equal(json_object_object_length(line), 1);
	line = json_object_object_get(line, "lock");
	assert_int_equal(json_object_get_int64(json_object_array_get_idx(line, 50)), 50);
	assert_int_equal(json_object_get_int64(json_object_array_get_idx(line, 51)), 100);
	/* What there is of something is never 0. */
	assert_int_equal(json_object_get_int64(json_object_array_get_idx(line, 52)), 51);
	assert_int_equal(number(at(all, 1), "pid"), 8);
	assert_false(json_object_object_get_ex(at(all, 1), "running", NULL));
	json_object_put(all);
	session_result_free(s);
}

/* Many pools: sixteen lines, and one for the others. */
static void test_others(void **state)
{
	struct session_result *s = new_session();
	json_object *all, *line;

	for (uint32_t i = 1; i <= 20; i++)
		timeline_add(s->timeline, pool_of(s, i, "w"), ACCOUNT_RUNNING, MS(s, 0), MS(s, i));
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 18);
	assert_int_equal(number(at(all, 0), "pid"), 20);
	line = at(all, 16);
	assert_int_equal(number(line, "others"), 4);
	assert_int_equal(slot_of(line, "running", 50), 1 + 2 + 3 + 4);
	assert_false(json_object_object_get_ex(line, "crowded", NULL));
	json_object_put(all);
	session_result_free(s);
}

/* Long numbers of many threads in every part fit a line in larger units. */
static void test_long_line(void **state)
{
	struct session_result *s = new_session();
	struct timeline_pool *pool = pool_of(s, 7, "w");
	json_object *all;

	for (int part = 0; part < ACCOUNT_PARTS_; part++) {
		timeline_add(s->timeline, pool, (enum account_part)part, MS(s, -5000), MS(s, 3000));
		for (uint32_t i = 0; i < s->timeline->slots; i++)
			pool->ns[part][i] *= 99999;
	}
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 2);
	assert_int_equal(number(at(all, 0), "unit_ms"), 100);
	assert_int_equal(slot_of(at(all, 0), "running", 0), 99999);
	json_object_put(all);
	session_result_free(s);
}

/* A session without evidence of threads has no line; one that ended early fewer slots. */
static void test_little(void **state)
{
	struct session_result *s = new_session();
	json_object *all;

	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 1);
	json_object_put(all);
	session_result_free(s);
	report_testing_teardown(NULL);
	report_testing_setup(NULL);
	s = new_session();
	s->stop_ns = MS(s, 130);
	timeline_add(s->timeline, pool_of(s, 7, "w"), ACCOUNT_RUNNING, MS(s, 0), MS(s, 130));
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(number(at(all, 0), "slots"), 52);
	assert_int_equal(slot_of(at(all, 0), "running", 51), 30);
	json_object_put(all);
	session_result_free(s);
}

UNIT_TESTS(session_timeline)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(test_##name, report_testing_setup, report_testing_teardown)
	const struct CMUnitTest tests[] = {
		TEST(lines),
		TEST(others),
		TEST(long_line),
		TEST(little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
