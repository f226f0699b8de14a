/* SPDX-License-Identifier: BSD-2-Clause */
/* The reasons that hold triggers back after a session, their length, and the lines about them. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <inttypes.h>
#include <stdio.h>

#include "consumer/sampling/drain.h"
#include "consumer/watch/binding.h"
#include "shared/tools/clock.h"

#define CGROUP	 (1ULL << 40)
#define STALL_MS 500 /* of the first session, in 2 s */

static struct fake *fake;
static struct watch *watch;

static const struct rule *rule_now(void)
{
	return rules_find(fake->a.active.set->rules, "all");
}

/* The same rule each time, beside another one that makes the sets differ. */
static void push(const char *other, unsigned int cooldown_ms, const char *scope)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"version\":1,\"rules\":[{\"name\":\"%s\",\"match\":{\"comm\":\"%s\"}},"
		 "{\"name\":\"all\",\"match\":{\"cgroup_prefix\":\"/unit/\"},\"capture\":"
		 "{\"during_ms\":1000,\"cooldown_ms\":%u,\"scope\":\"%s\"}}]}",
		 other, other, cooldown_ms, scope);
	fake_rules(fake, text);
}

/* A process in the cgroup, which each scan lists. */
static void use_watch(void)
{
	const struct task_record task = {
		.tgid = 100, .start_ns = fake_start_ns(100), .cgroup_id = CGROUP, .comm = "node"
	};

	fake_tasks(fake, &task, 1);
	cgroups_learn(&fake->a.cgroups, CGROUP, "/unit/cooldown");
	assert_int_equal(watch_get(&fake->a.watches, CGROUP, 0, &watch), 0);
	assert_int_equal(binding_add_cgroup(watch, rule_now()), 0);
}

static int setup(void **state)
{
	fake = fake_new();
	if (!fake)
		return 0;
	push("first", 60000, "cgroup");
	use_watch();
	return 0;
}

static int teardown(void **state)
{
	if (fake)
		fake_free(fake);
	return 0;
}

/* Why it was held back; NULL: it began a session. */
static const char *fire(const struct trigger_reason *reason, struct session **ret_session)
{
	const struct trigger trigger = { .watch = watch, .rule = rule_now(), .reason = *reason };
	struct trigger_held held = {};

	return trigger_fire(&fake->a.triggers, &trigger, ret_session, &held) == 0 ? NULL
										  : held.reason;
}

static struct trigger_reason exec_reason(void)
{
	return (struct trigger_reason){ .kind = TRIGGER_EXEC, .pid = 100, .comm = "node" };
}

/* The cgroup's total went from one to the other in 2 s. */
static struct trigger_reason stall(enum resource resource, uint64_t from_ms, uint64_t to_ms)
{
	return (struct trigger_reason){
		.kind = TRIGGER_PRESSURE,
		.by = "scan",
		.when = { .resource = resource, .stall_ms = 100, .window_ms = 2000 },
		.stall_ms = to_ms - from_ms,
		.measured_ms = 2000,
		.before.some.total_us = from_ms * 1000,
		.now.some.total_us = to_ms * 1000,
	};
}

static void end(struct session *s)
{
	session_end(&fake->a.sessions, s);
	fake_drain_samples(fake);
	triggers_step(&fake->a.triggers, clock_mono_ns() + NSEC_PER_SEC);
	assert_int_equal(fake->a.sessions.count, 0);
}

/* A session that such a trigger begins, to its end; returns its id. */
static uint64_t capture(struct trigger_reason reason)
{
	struct session *s = NULL;
	uint64_t id;

	assert_null(fire(&reason, &s));
	id = s->result->id;
	end(s);
	return id;
}

static void expect_held(struct trigger_reason reason, const char *why)
{
	struct session *s;
	const char *held = fire(&reason, &s);

	assert_non_null(held);
	assert_string_equal(held, why);
}

static int64_t number(json_object *object, const char *key)
{
	return json_object_get_int64(json_object_object_get(object, key));
}

/* Its processes end, and others come: it is the same cgroup and the same rule. */
static void test_outlives_watch(void **state)
{
	if (!fake)
		skip();
	capture(exec_reason());
	watch_remove(watch, "cgroup_empty");
	use_watch();
	expect_held(exec_reason(), "cooldown");
	/* Also where the watch goes first, and the session with it. */
	capture(stall(RESOURCE_IO, 0, STALL_MS));
	watch_remove(watch, "cgroup_empty");
	use_watch();
	expect_held(stall(RESOURCE_IO, 1000, 1100), "cooldown");
}

/* The set that is pushed has the same rule at another place. */
static void test_outlives_push(void **state)
{
	struct trigger_reason reason = exec_reason();
	struct session *s = NULL;

	if (!fake)
		skip();
	assert_null(fire(&reason, &s));
	push("second", 60000, "cgroup");
	end(s);
	expect_held(exec_reason(), "cooldown");
	push("third", 60000, "cgroup");
	expect_held(exec_reason(), "cooldown");
	/* The rule's own word holds: a set that takes the cooldown away ends it. */
	push("fourth", 0, "cgroup");
	capture(exec_reason());
	push("fifth", 60000, "cgroup");
	expect_held(exec_reason(), "cooldown");
	/* A rule that went, and came again, is another. */
	fake_rules(fake, "{\"version\":1,\"rules\":[]}");
	push("sixth", 60000, "cgroup");
	use_watch();
	capture(exec_reason());
}

/* A session by process goes on with the processes of its rule when the same rule is pushed. */
static void test_session_follows_rule(void **state)
{
	struct trigger_reason reason = exec_reason();
	struct session *s = NULL;
	struct process *p;

	if (!fake)
		skip();
	push("second", 60000, "process");
	use_watch();
	p = process_find(&fake->a.processes, 100, fake_start_ns(100));
	assert_non_null(p);
	assert_null(fire(&reason, &s));
	assert_true(s->target.only_rule);
	assert_ptr_equal(s->target.rule, p->rule);
	push("third", 60000, "process");
	assert_ptr_equal(p->rule, rule_now());
	assert_ptr_equal(s->target.rule, p->rule);
	/* Its lines stay those of the set in which it began. */
	assert_ptr_not_equal(s->result->rule, p->rule);
	fake_rules(fake, "{\"version\":1,\"rules\":[]}");
	assert_ptr_equal(s->target.rule, s->result->rule);
}

/* A blip of one resource does not hide the stall of another. */
static void test_each_resource(void **state)
{
	if (!fake)
		skip();
	capture(stall(RESOURCE_CPU, 0, STALL_MS));
	expect_held(stall(RESOURCE_CPU, 600, 800), "cooldown");
	capture(stall(RESOURCE_IO, 0, 100));
	expect_held(stall(RESOURCE_IO, 100, 200), "cooldown");
	capture(exec_reason());
	/* Nor does a session on request hold anything. */
	capture((struct trigger_reason){ .kind = TRIGGER_REQUEST, .pid = 1 });
	capture(stall(RESOURCE_MEMORY, 0, 100));
}

/* This much time passes for the compared triggers. */
static void pass(uint64_t seconds)
{
	struct cooldown *e;
	uint64_t id;

	idmap_for_each (&fake->a.triggers.cooldowns.by_key, i, id, e)
		e->from_ns -= e->from_ns ? seconds * NSEC_PER_SEC : 0;
}

/* As much again is no news; three times as much at once is. */
static void test_larger_stall_breaks(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	char id[SESSION_TEXT_BYTES];

	if (!fake)
		skip();
	event_line_session_text(capture(stall(RESOURCE_IO, 0, STALL_MS)), id);
	expect_held(stall(RESOURCE_IO, 1000, 1000 + STALL_MS), "cooldown");
	pass(2);
	expect_held(stall(RESOURCE_IO, 1500, 1500 + 3 * STALL_MS - 10), "cooldown");
	/* Two stalls far apart are not one large one. */
	pass(10);
	expect_held(stall(RESOURCE_IO, 2990, 2990 + 2 * STALL_MS), "cooldown");
	assert_int_equal(fake_count(fake, "pressure"), 1);
	/* Two in a row are; they stay so for a second in which others have the CPU. */
	pass(2);
	capture(stall(RESOURCE_IO, 2990 + 2 * STALL_MS, 2980 + 5 * STALL_MS));
	line = fake_last(fake, "pressure");
	assert_string_equal(fake_text(line, "broke_cooldown_of"), id);
	/* The next must be larger than this one. */
	expect_held(stall(RESOURCE_IO, 8000, 9400), "cooldown");
}

/* Steady pressure, however long it lasts, is not larger than the session's own. */
static void test_steady_stall_is_held(void **state)
{
	if (!fake)
		skip();
	capture(stall(RESOURCE_IO, 0, STALL_MS));
	for (uint64_t k = 1; k < 20; k++) {
		expect_held(stall(RESOURCE_IO, k * STALL_MS, (k + 1) * STALL_MS), "cooldown");
		pass(2);
	}
}

/* One line at once, then one with the sums of all that followed; no moment counts twice. */
static void test_sums(void **state)
{
	struct cooldowns *all = fake ? &fake->a.triggers.cooldowns : NULL;
	_cleanup_json_ json_object *first = NULL, *sums = NULL;
	char session[SESSION_TEXT_BYTES];
	struct cooldown *e;
	uint64_t id;

	if (!fake)
		skip();
	event_line_session_text(capture(stall(RESOURCE_CPU, 0, STALL_MS)), session);
	expect_held(stall(RESOURCE_CPU, 1000, 1200), "cooldown");
	first = fake_last(fake, "trigger.held");
	assert_string_equal(fake_text(first, "session"), session);
	assert_null(fake_text(first, "repeats"));
	expect_held(stall(RESOURCE_CPU, 1100, 1400), "cooldown");
	expect_held(stall(RESOURCE_CPU, 1400, 1500), "cooldown");
	assert_int_equal(fake_count(fake, "trigger.held"), 1);
	/* They are due when the cooldown is over, also when the watch has gone by then. */
	watch_remove(watch, "cgroup_removed");
	cgroups_forget(&fake->a.cgroups, CGROUP);
	idmap_for_each (&all->by_key, i, id, e)
		e->logged_ns -= 60 * NSEC_PER_SEC;
	cooldowns_expire(all, clock_mono_ns() + 2 * NSEC_PER_SEC);
	sums = fake_last(fake, "trigger.held");
	assert_int_equal(number(sums, "repeats"), 2);
	assert_int_equal(number(sums, "largest_ms"), 300);
	assert_int_equal(number(sums, "sum_ms"), 300);
	assert_string_equal(fake_text(sums, "session"), session);
	assert_string_equal(fake_text(sums, "cgroup"), "/unit/cooldown");
	assert_string_equal(fake_text(sums, "rule"), "all");
	/* Nothing more is to be reported, and in the end nothing is kept. */
	cooldowns_expire(all, clock_mono_ns() + 30 * NSEC_PER_SEC);
	assert_int_equal(all->by_key.count, 1);
	cooldowns_expire(all, clock_mono_ns() + 130 * NSEC_PER_SEC);
	assert_int_equal(all->by_key.count, 0);
	assert_int_equal(fake_count(fake, "trigger.held"), 2);
}

/* Whether it is one of the session's own lines. */
static bool is_of(json_object *line, const char *session)
{
	json_object *id = json_object_object_get(line, "session");

	return strcmp(fake_text(line, "type"), "trigger.held") != 0 &&
	       (!strcmp(fake_text(line, "type"), "facts") ||
		(id && !strcmp(json_object_get_string(id), session)));
}

/* Held triggers are reported before the session that comes after them, and when the rule goes. */
static void test_sums_come_first(void **state)
{
	_cleanup_json_ json_object *lines = NULL, *line = NULL;
	char first[32];
	size_t n;

	if (!fake)
		skip();
	snprintf(first, sizeof(first), "%016" PRIx64, capture(stall(RESOURCE_IO, 0, STALL_MS)));
	expect_held(stall(RESOURCE_IO, 500, 700), "cooldown");
	expect_held(stall(RESOURCE_IO, 700, 900), "cooldown");
	capture(stall(RESOURCE_IO, 1000, 2900));
	lines = fake_lines(fake);
	n = json_object_array_length(lines);
	while (n-- && strcmp(fake_text(json_object_array_get_idx(lines, n), "type"), "pressure"))
		;
	/* The report thread writes the first session's lines when it gets a CPU. */
	while (n-- && is_of(json_object_array_get_idx(lines, n), first))
		;
	line = json_object_get(json_object_array_get_idx(lines, n));
	assert_string_equal(fake_text(line, "type"), "trigger.held");
	assert_int_equal(number(line, "repeats"), 1);
	expect_held(stall(RESOURCE_IO, 3000, 3200), "cooldown");
	assert_int_equal(fake_count(fake, "trigger.held"), 2);
	fake_rules(fake, "{\"version\":1,\"rules\":[]}");
	assert_int_equal(fake_count(fake, "trigger.held"), 3);
	assert_int_equal(fake->a.triggers.cooldowns.by_key.count, 0);
}

/* A session's end has the triggers that were held in its cgroup while it ran, by cause. */
static void test_held_in_session_end(void **state)
{
	struct trigger_reason reason = stall(RESOURCE_CPU, 0, STALL_MS);
	_cleanup_json_ json_object *line = NULL;
	json_object *held, *one;
	struct session *s = NULL;

	if (!fake)
		skip();
	assert_null(fire(&reason, &s));
	expect_held(stall(RESOURCE_IO, 1000, 2900), "session_running");
	expect_held(stall(RESOURCE_IO, 2900, 4800), "session_running");
	expect_held(stall(RESOURCE_IO, 4800, 5000), "session_running");
	expect_held(exec_reason(), "session_running");
	end(s);
	line = fake_last(fake, "session.end");
	held = json_object_object_get(line, "held");
	assert_int_equal(json_object_array_length(held), 2);
	one = json_object_array_get_idx(held, 0);
	assert_string_equal(fake_text(one, "resource"), "io");
	assert_int_equal(number(one, "triggers"), 3);
	assert_int_equal(number(one, "largest_ms"), 1900);
	assert_int_equal(number(one, "sum_ms"), 4000);
	one = json_object_array_get_idx(held, 1);
	assert_string_equal(fake_text(one, "trigger"), "exec");
	assert_null(fake_text(one, "sum_ms"));
}

/* A full table: the one that is over first makes room, and its held triggers are reported. */
static void test_full_table(void **state)
{
	struct cooldowns *all = fake ? &fake->a.triggers.cooldowns : NULL;
	struct cooldown_key key = { .cgroup = "/unit/many", .cause = CAUSE_REQUEST };
	const struct trigger_held held = { "too_many_sessions", 1000, 0 };
	const struct trigger_reason reason = { .kind = TRIGGER_REQUEST };
	uint64_t now_ns = clock_mono_ns(), before;

	if (!fake)
		skip();
	expect_held(exec_reason(), capture(exec_reason()) ? "cooldown" : "");
	expect_held(exec_reason(), "cooldown");
	before = fake_count(fake, "trigger.held");
	/* Without lines: these have none to write. */
	for (key.cgroup_id = 1; all->by_key.count < COOLDOWNS_MAX; key.cgroup_id++) {
		struct session_result r = { .stop_ns = now_ns + key.cgroup_id * NSEC_PER_SEC,
					    .reason.kind = TRIGGER_EXEC,
					    .id = key.cgroup_id };

		key.rule = rule_now();
		key.cause = CAUSE_EXEC;
		cooldown_begin(all, &key, &r);
	}
	assert_int_equal(fake_count(fake, "trigger.held"), before);
	cooldown_hold(all, &key, &reason, &held, now_ns);
	assert_int_equal(all->by_key.count, COOLDOWNS_MAX);
	/* Its own line, and the sums of the first one. */
	assert_int_equal(fake_count(fake, "trigger.held"), before + 2);
	capture(exec_reason());
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(cooldown)
{
	const struct CMUnitTest tests[] = {
		EACH(test_outlives_watch),
		EACH(test_outlives_push),
		EACH(test_session_follows_rule),
		EACH(test_each_resource),
		EACH(test_larger_stall_breaks),
		EACH(test_steady_stall_is_held),
		EACH(test_sums),
		EACH(test_sums_come_first),
		EACH(test_held_in_session_end),
		EACH(test_full_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
