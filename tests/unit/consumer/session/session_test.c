/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions from trigger to last line: samples through the ring, losses through real counters. */
#include "tests/unit/consumer/testing/session_testing.h"

#include <errno.h>

#include "consumer/session/session_events.h"
#include "shared/json/jsonw.h"

/*
 * Arrived samples of before and during, and those without room in the ring, add up to the attempts.
 */
static void test_account(void **state)
{
	int64_t cpus = fake ? fake->a.pins.abi.cpus_possible : 0;
	_cleanup_json_ json_object *line = NULL;
	struct session *s;
	json_object *l;

	if (!fake)
		skip();
	for (uint32_t seq = 0; seq < 4; seq++)
		put(seq, 0, 100, watch->epoch);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 4, .emitted = 4 });
	s = start(TRIGGER_EXEC);
	assert_int_equal(fake->slots[watch->slot].state, SLOT_CAPTURE);
	assert_int_equal(fake->slots[watch->slot].session, s->result->id);
	for (uint32_t seq = 4; seq < 14; seq++)
		if (seq != 7 && seq != 8)
			put(seq, SAMPLE_CAPTURE, 100, watch->epoch);
	fake_counters(fake, watch->slot,
		      (struct slot_counters){
			      .attempted = 14, .emitted = 12, .lost = { [DROP_RING_FULL] = 2 } });
	end(s);
	assert_int_equal(fake->slots[watch->slot].state, SLOT_RECORDER);
	assert_int_equal(fake->slots[watch->slot].session, 0);
	line = fake_last(fake, "session.end");
	l = ledger_of(line);
	assert_int_equal(number(l, "attempted"), 14 * cpus);
	assert_int_equal(number(l, "emitted"), 12 * cpus);
	assert_int_equal(number(json_object_object_get(l, "lost"), "ring_full"), 2 * cpus);
	assert_int_equal(number(json_object_object_get(l, "before"), "emitted"), 4 * cpus);
	assert_int_equal(number(json_object_object_get(l, "during"), "attempted"), 10 * cpus);
	assert_string_equal(fake_text(line, "verdict"), "partial");
	assert_int_equal(fake_count(fake, "stack"), 2);
}

/* Samples with a number after the end belong to the recorder, not to this session. */
static void test_late(void **state)
{
	int64_t cpus = fake ? fake->a.pins.abi.cpus_possible : 0;
	_cleanup_json_ json_object *line = NULL;
	struct session *s;

	if (!fake)
		skip();
	s = start(TRIGGER_EXEC);
	put(0, SAMPLE_CAPTURE, 100, watch->epoch);
	put(1, 0, 100, watch->epoch);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 1, .emitted = 1 });
	end(s);
	line = fake_last(fake, "session.end");
	assert_int_equal(number(ledger_of(line), "attempted"), cpus);
	assert_int_equal(number(ledger_of(line), "emitted"), cpus);
	assert_string_equal(fake_text(line, "verdict"), "complete");
}

/* Samples of the watch that had the slot before do not count. */
static void test_other_epoch(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct session *s;

	if (!fake)
		skip();
	put(0, 0, 100, watch->epoch - 1);
	s = start(TRIGGER_EXEC);
	put(0, SAMPLE_CAPTURE, 100, watch->epoch + 1);
	end(s);
	line = fake_last(fake, "session.end");
	assert_int_equal(number(ledger_of(line), "emitted"), 0);
	assert_int_equal(fake_count(fake, "stack"), 0);
}

static void test_held(void **state)
{
	struct session *s;

	if (!fake)
		skip();
	s = start(TRIGGER_EXEC);
	assert_string_equal(held_by(TRIGGER_EXEC), "session_running");
	assert_string_equal(held_by(TRIGGER_REQUEST), "session_running");
	end(s);
	assert_string_equal(held_by(TRIGGER_EXEC), "cooldown");
	/* Repeats within the quiet time are counted, not reported: by trigger. */
	for (int i = 0; i < 10; i++)
		assert_string_equal(held_by(TRIGGER_EXEC), "cooldown");
	assert_int_equal(fake_count(fake, "trigger.held"), 2);
	assert_int_equal(fake->a.triggers.held, 13);
	/* A request does not wait for the cooldown. */
	end(start(TRIGGER_REQUEST));
}

static void test_budgets(void **state)
{
	uint64_t now = clock_mono_ns();

	if (!fake)
		skip();
	budget_spend(&fake->a.active.set->budgets[0], now, rule->budget_s * 1000 - 100);
	end(start(TRIGGER_REQUEST));
	budget_spend(&fake->a.active.set->budgets[0], now, 1);
	assert_string_equal(held_by(TRIGGER_EXEC), "budget_rule");
	memset(&fake->a.active.set->budgets[0], 0, sizeof(struct budget));
	shares_captured(&fake->a.shares, watch->owner, now,
			fake->a.active.set->rules->budget_s * 1000);
	assert_string_equal(held_by(TRIGGER_REQUEST), "budget_all");
	assert_int_equal(fake_count(fake, "trigger.held"), 2);
}

/*
 * An owner that uses up all seconds, the rule's too, does not keep another out; nor has he more
 * then.
 */
static void test_owners(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	uint64_t now = clock_mono_ns();
	struct owner *other;
	uint32_t all_ms;

	if (!fake)
		skip();
	all_ms = fake->a.active.set->rules->budget_s * 1000;
	other = shares_owner(&fake->a.shares, "uid 1000");
	shares_captured(&fake->a.shares, other, now, all_ms);
	budget_spend(&fake->a.active.set->budgets[0], now, rule->budget_s * 1000);
	end(start(TRIGGER_EXEC));
	shares_captured(&fake->a.shares, watch->owner, now, all_ms / 2);
	memset(&fake->a.active.set->budgets[0], 0, sizeof(struct budget));
	assert_string_equal(held_by(TRIGGER_REQUEST), "budget_owner");
	line = fake_last(fake, "trigger.held");
	assert_string_equal(fake_text(line, "reason"), "budget_owner");
	shares_put(&fake->a.shares, other);
}

/* Nor does an owner of many sessions at once take the last of them. */
static void test_sessions_of_one(void **state)
{
	struct session others = { 0 };

	if (!fake)
		skip();
	others.owner = watch->owner;
	for (size_t i = 0; i < SESSIONS_MAX * 3 / 4; i++)
		fake->a.sessions.running[i] = &others;
	assert_string_equal(held_by(TRIGGER_REQUEST), "too_many_sessions");
	others.owner = NULL;
	memset(fake->a.sessions.running, 0, sizeof(fake->a.sessions.running));
	end(start(TRIGGER_REQUEST));
}

static void test_too_many(void **state)
{
	if (!fake)
		skip();
	fake->a.sessions.count = SESSIONS_MAX;
	assert_string_equal(held_by(TRIGGER_REQUEST), "too_many_sessions");
	fake->a.sessions.count = 0;
}

/* The cgroup is removed while it is captured: what there is still comes, with its account. */
static void test_watch_removed(void **state)
{
	int64_t cpus = fake ? fake->a.pins.abi.cpus_possible : 0;
	_cleanup_json_ json_object *line = NULL;

	if (!fake)
		skip();
	start(TRIGGER_EXEC);
	put(0, SAMPLE_CAPTURE, 100, watch->epoch);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 1, .emitted = 1 });
	watch_remove(watch, "cgroup_removed");
	fake_drain_samples(fake);
	step(clock_mono_ns() + NSEC_PER_SEC);
	assert_int_equal(fake->a.sessions.count, 0);
	line = fake_last(fake, "session.end");
	assert_int_equal(number(ledger_of(line), "emitted"), cpus);
	assert_string_equal(fake_text(line, "cgroup"), "/unit/session");
}

/* Its time ends it, and the ring is waited for. */
static void test_steps(void **state)
{
	struct session *s;
	uint64_t now;

	if (!fake)
		skip();
	s = start(TRIGGER_EXEC);
	now = s->target.start_ns;
	assert_int_equal(s->end_ns, now + 1000 * NSEC_PER_MSEC);
	step(now + 999 * NSEC_PER_MSEC);
	assert_false(s->ending);
	s->end_ns = now;
	/* One attempt without a record. */
	fake_counters(fake, watch->slot,
		      (struct slot_counters){ .attempted = 1, .lost = { [DROP_RING_FULL] = 1 } });
	step(now);
	assert_true(s->ending);
	assert_ptr_equal(watch->session, s);
	step(s->settled_ns - 1);
	assert_int_equal(fake->a.sessions.count, 1);
	step(s->settled_ns);
	assert_int_equal(fake->a.sessions.count, 0);
	assert_int_equal(fake_count(fake, "session.start"), 1);
	assert_int_equal(fake_count(fake, "session.end"), 1);
}

/* Once every attempt has arrived there is nothing to wait for, and not before. */
static void test_all_here(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct session *s;
	uint64_t now;

	if (!fake)
		skip();
	s = start(TRIGGER_EXEC);
	now = s->target.start_ns;
	s->end_ns = now;
	put(0, SAMPLE_CAPTURE, 100, watch->epoch);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 2 });
	step(now);
	assert_ptr_equal(watch->session, s);
	put(1, SAMPLE_CAPTURE, 100, watch->epoch);
	fake_drain_samples(fake);
	step(now);
	assert_null(watch->session);
	line = fake_last(fake, "session.end");
	assert_string_equal(fake_text(line, "verdict"), "complete");
}

/* The list that the control socket gives: the running one, then ended ones, newest first. */
static void test_write(void **state)
{
	struct jsonw w;
	json_object *root;

	if (!fake)
		skip();
	for (int i = 0; i < SESSIONS_ENDED + 3; i++) {
		end(start(TRIGGER_REQUEST));
		/* Written before the next one, so that the reporter's queue holds none back. */
		assert_int_equal(fake_count(fake, "session.end"), i + 1);
	}
	start(TRIGGER_REQUEST);
	jsonw_init(&w, 1 << 20);
	session_events_write_list(&fake->a.sessions, &w);
	jsonw_string_n(&w, NULL, "", 0);
	assert_int_equal(jsonw_end(&w), 0);
	w.data[w.bytes - 3] = 0;
	root = json_tokener_parse(w.data);
	assert_int_equal(json_object_array_length(root), SESSIONS_ENDED + 1);
	assert_string_equal(fake_text(json_object_array_get_idx(root, 0), "state"), "capture");
	assert_string_equal(fake_text(json_object_array_get_idx(root, 1), "state"), "ended");
	json_object_put(root);
	jsonw_done(&w);
}

/* Where the first line of that type stands, from 0; the test fails where there is none. */
static size_t place_of(json_object *lines, const char *type)
{
	for (size_t i = 0; i < json_object_array_length(lines); i++)
		if (!strcmp(fake_text(json_object_array_get_idx(lines, i), "type"), type))
			return i;
	fail_msg("no line %s", type);
	return 0;
}

/*
 * A subscriber learns of a watch before its trigger, of the trigger before its session, and of the
 * session's end last; all but the first name the session.
 */
static void test_order_of_lines(void **state)
{
	static const char *const order[] = { "watch.start", "pressure", "session.start", "stack",
					     "session.end" };
	struct trigger trigger = cpu_trigger();
	struct trigger_held held;
	json_object *lines;
	struct session *s;
	const char *id;

	if (!fake)
		skip();
	assert_int_equal(trigger_fire(&fake->a.triggers, &trigger, &s, &held), 0);
	put(0, SAMPLE_CAPTURE, 100, watch->epoch);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 1, .emitted = 1 });
	end(s);
	lines = fake_lines(fake);
	id = fake_text(json_object_array_get_idx(lines, place_of(lines, "pressure")), "session");
	assert_non_null(id);
	for (size_t i = 1; i < ARRAY_SIZE(order); i++) {
		size_t at = place_of(lines, order[i]);

		assert_true(place_of(lines, order[i - 1]) < at);
		assert_string_equal(fake_text(json_object_array_get_idx(lines, at), "session"), id);
	}
	json_object_put(lines);
}

/* A held trigger leaves the one line about it. */
static void test_order_held(void **state)
{
	struct trigger trigger = cpu_trigger();
	struct trigger_held held;
	struct session *s;

	if (!fake)
		skip();
	start(TRIGGER_EXEC);
	assert_int_equal(trigger_fire(&fake->a.triggers, &trigger, &s, &held), -EAGAIN);
	assert_int_equal(fake_count(fake, "pressure"), 0);
	assert_int_equal(fake_count(fake, "trigger.held"), 1);
}

UNIT_TESTS(session)
{
	const struct CMUnitTest tests[] = {
		EACH(test_account),	   EACH(test_late),	  EACH(test_other_epoch),
		EACH(test_held),	   EACH(test_budgets),	  EACH(test_too_many),
		EACH(test_watch_removed),  EACH(test_steps),	  EACH(test_all_here),
		EACH(test_write),	   EACH(test_owners),	  EACH(test_sessions_of_one),
		EACH(test_order_of_lines), EACH(test_order_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
