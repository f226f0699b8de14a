/* SPDX-License-Identifier: BSD-2-Clause */
/* The readings of a watch's CPU time that begin sessions, and their lines. */
#include "tests/unit/consumer/testing/group_testing.h"

#include <stdio.h>
#include <string.h>

#include "consumer/conditions/pressure_follow.h"
#include "consumer/conditions/quiet_follow.h"
#include "consumer/watch/binding.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define STEP_MS 5000

static uint64_t now_ms, cpu_us; /* of the readings, which are far ahead of the clock */

/* Puts the rule api in force beside one that keeps the watch; returns the watch, bound to both. */
static struct watch *use_rules(const char *when, unsigned int cooldown_ms)
{
	const struct rule *rules;
	struct watch *w;
	char text[1024];

	snprintf(
		text, sizeof(text),
		"{\"version\":1,\"rules\":[{\"name\":\"keep\",\"match\":{\"cgroup_prefix\":\"%s\"}},"
		"{\"name\":\"api\",\"match\":{\"comm\":\"node\"},\"when\":[%s],"
		"\"capture\":{\"cooldown_ms\":%u}}]}",
		group.path, when, cooldown_ms);
	fake_rules(fake, text);
	rules = fake->a.active.set->rules->rules;
	cgroups_learn(&fake->a.cgroups, group.id, group.path);
	assert_int_equal(watch_get(&fake->a.watches, group.id, 0, &w), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(binding_add_cgroup(w, &rules[i]), 0);
	return w;
}

static int setup(void **state)
{
	group_begin("quiet");
	now_ms = clock_mono_ns() / NSEC_PER_MSEC;
	cpu_us = 12345;
	return 0;
}

static struct quiet *quiet_of(const struct watch *w)
{
	return pressure_follow_of(&fake->a.pressure, w)->quiet;
}

static void read_once(struct watch *w)
{
	static const struct facts_place place;
	struct facts f = { .time_ns = now_ms * NSEC_PER_MSEC };

	f.has = 1ULL << FACT_CPU_USAGE;
	f.value[FACT_CPU_USAGE] = cpu_us;
	facts_record_add(&w->facts, &place, &f);
	pressure_follow_drained(&fake->a.pressure, clock_mono_ns());
}

/* So many seconds at so many percent of a CPU. */
static void run(struct watch *w, unsigned int seconds, unsigned int percent)
{
	for (unsigned int ms = 0; ms < seconds * 1000; ms += STEP_MS) {
		now_ms += STEP_MS;
		cpu_us += (uint64_t)STEP_MS * 10 * percent;
		read_once(w);
	}
}

static int64_t number(const json_object *object, const char *key)
{
	return json_object_get_int64(json_object_object_get(object, key));
}

static void end_session(struct watch *w)
{
	assert_non_null(w->session);
	session_end(&fake->a.sessions, w->session);
	triggers_step(&fake->a.triggers, clock_mono_ns() + NSEC_PER_SEC);
	assert_null(w->session);
}

static void test_session(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	json_object *reason;
	struct watch *w;

	if (!fake)
		skip();
	w = use_rules("{\"quiet_pct\":10}", 0);
	run(w, 120, 30);
	assert_int_equal(fake_count(fake, "session.start"), 0);
	run(w, 5, 2);
	assert_int_equal(fake_count(fake, "session.start"), 1);
	line = fake_last(fake, "session.start");
	reason = json_object_object_get(json_object_object_get(line, "reason"), "quiet");
	assert_int_equal(number(reason, "cpu_ms"), 100);
	assert_int_equal(number(reason, "mean_cpu_ms"), 1500);
	assert_int_equal(number(reason, "measured_ms"), 5000);
	assert_int_equal(number(reason, "window_ms"), 5000);
	assert_string_equal(fake_text(reason, "share_pct"), "6.666");
	assert_int_equal(w->session->result->reason.kind, TRIGGER_QUIET);
	assert_true(quiet_of(w)->series.quiet_ms);
	end_session(w);
	/* It goes on: no other session, and nothing that was held back. */
	run(w, 100, 0);
	assert_int_equal(fake_count(fake, "session.start"), 1);
	assert_int_equal(fake_count(fake, "trigger.held"), 0);
	assert_int_equal(fake_count(fake, "pressure"), 0);
}

/* Held back by the cooldown, it is tried again while it is quiet. */
static void test_held(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct watch *w;

	if (!fake)
		skip();
	w = use_rules("{\"quiet_pct\":10}", 3600000);
	run(w, 120, 30);
	run(w, 10, 0);
	end_session(w);
	run(w, 30, 30);
	run(w, 20, 0);
	assert_int_equal(fake_count(fake, "session.start"), 1);
	line = fake_last(fake, "trigger.held");
	assert_string_equal(fake_text(line, "trigger"), "quiet");
	assert_string_equal(fake_text(line, "reason"), "cooldown");
	assert_string_equal(fake_text(line, "share_pct"), "0.000");
	assert_int_equal(fake->a.triggers.held, 4);
}

/* A cgroup that falls quiet three times an hour does so by habit. */
static void test_habit(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct watch *w;

	if (!fake)
		skip();
	w = use_rules("{\"quiet_pct\":10}", 0);
	run(w, 120, 30);
	for (int i = 1; i <= HABIT_SESSIONS; i++) {
		run(w, 10, 0);
		assert_int_equal(fake_count(fake, "session.start"), i);
		end_session(w);
		run(w, 30, 30);
	}
	run(w, 10, 0);
	assert_int_equal(fake_count(fake, "session.start"), HABIT_SESSIONS);
	line = fake_last(fake, "trigger.held");
	assert_string_equal(fake_text(line, "reason"), "habit");
	assert_in_range(number(line, "retry_ms"), 3500000, 3600001);
	/* An hour after them; a machine that is up for less has had none. */
	for (int i = 0; i < HABIT_SESSIONS; i++)
		quiet_of(w)->thresholds[0].begun_ns[i] -=
			MIN(HABIT_NS, quiet_of(w)->thresholds[0].begun_ns[i]);
	run(w, 5, 0);
	assert_int_equal(fake_count(fake, "session.start"), HABIT_SESSIONS + 1);
	end_session(w);
}

/* Thresholds are followed while rules ask for them, each once. */
static void test_rules(void **state)
{
	struct watch *w;

	if (!fake)
		skip();
	w = use_rules(
		"{\"quiet_pct\":10},{\"quiet_pct\":10},{\"quiet_pct\":30,\"window_ms\":10000}", 0);
	assert_int_equal(quiet_of(w)->count, 2);
	assert_null(pressure_follow_of(&fake->a.pressure, w)->thresholds);
	/* A rule that changes learns anew. */
	run(w, 120, 30);
	assert_ptr_equal(use_rules("{\"quiet_pct\":30,\"window_ms\":10000},"
				   "{\"pressure\":\"cpu\",\"some_ms\":2000}",
				   0),
			 w);
	assert_int_equal(quiet_of(w)->count, 1);
	assert_non_null(pressure_follow_of(&fake->a.pressure, w)->thresholds);
	run(w, 120, 30);
	run(w, 5, 0);
	assert_null(w->session);
	run(w, 5, 0);
	end_session(w);
	assert_null(quiet_of(use_rules("{\"pressure\":\"cpu\",\"some_ms\":2000}", 0)));
	assert_null(quiet_of(use_rules("", 0)));
}

/* All processes went and others came: no stall, and another usual time. */
static void test_restart(void **state)
{
	struct watch *w;

	if (!fake)
		skip();
	w = use_rules("{\"quiet_pct\":10}", 0);
	run(w, 120, 30);
	for (uint32_t pid = 100; pid <= 102; pid++)
		fake_event(fake, EVENT_EXEC, pid, group.id, pid == 102 ? "other" : "node");
	/* Of the three, one is the other rule's. */
	for (uint32_t pid = 100; pid <= 102; pid++) {
		assert_int_equal(w->emptied_ns, 0);
		fake_event(fake, EVENT_EXIT, pid, group.id, pid == 102 ? "other" : "node");
	}
	assert_int_not_equal(w->emptied_ns, 0);
	assert_ptr_equal(watch_of(group.id), w);
	/* The readings' clock is ahead. */
	w->emptied_ns = (now_ms + 1) * NSEC_PER_MSEC;
	fake_event(fake, EVENT_EXEC, 103, group.id, "node");
	run(w, 30, 0);
	assert_int_equal(fake_count(fake, "session.start"), 0);
}

static void expect_state(const struct watch *w, const char *state)
{
	struct jsonw json;

	jsonw_init(&json, 4096);
	jsonw_object(&json, NULL);
	quiet_follow_write(quiet_of(w), w, true, &json);
	jsonw_object_end(&json);
	assert_int_equal(jsonw_end(&json), 0);
	if (!memmem(json.data, json.bytes, state, strlen(state)))
		fail_msg("no %s: %.*s", state, (int)json.bytes, json.data);
	jsonw_done(&json);
}

static void test_state(void **state)
{
	struct watch *w;

	if (!fake)
		skip();
	w = use_rules("{\"quiet_pct\":10}", 0);
	expect_state(w, "\"state\":\"learns\"");
	run(w, 120, 30);
	expect_state(
		w,
		"\"state\":\"follows\",\"measured_ms\":5000,\"cpu_ms\":1500,\"mean_cpu_ms\":1500");
	run(w, 10, 0);
	expect_state(w, "\"state\":\"quiet\"");
	end_session(w);
	run(w, 600, 0);
	expect_state(w, "\"state\":\"idle\"");
	expect_state(use_rules("", 0), "{}");
}

UNIT_TESTS(quiet_follow)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_session, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_habit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_state, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
