/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.start as the socket hands it on: refusals and their reasons, and the session of a granted
 * one.
 */
#include "tests/unit/consumer/testing/group_testing.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <unistd.h>

#include "consumer/control/control_request.h"
#include "consumer/io/turn.h"
#include "consumer/methods/method_session_start.h"
#include "consumer/watch/binding.h"
#include "shared/json/json_tree.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static struct fake *fake;
static struct fake_cgroup group;
static const struct control_peer peer = { .pid = 4711, .uid = 1234, .admin = true };

static int setup(void **state)
{
	group_begin("requests");
	if (fake)
		fake_rules(fake, "{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":"
				 "\"node\"},\"capture\":{\"during_ms\":1500}}]}");
	return 0;
}

static json_object *parsed(const struct jsonw *w)
{
	struct json_tokener *tokener = json_tokener_new();
	json_object *value = json_tokener_parse_ex(tokener, w->data, (int)w->bytes);

	json_tokener_free(tokener);
	return value;
}

/* The answer to these params (NULL: none): 0 with *ret_result, or the code of the refusal. */
static int ask(const char *params, json_object **ret_result, struct control_error *ret_error)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	struct control_job *job = NULL;
	struct json_fault fault;
	struct jsonw result;
	int r;

	if (params)
		assert_int_equal(
			json_tree_read(params, strlen(params), CONTROL_NESTING, &tree, &fault), 0);
	jsonw_init(&result, 4096);
	*ret_error = (struct control_error){ 0 };
	jsonw_init(&ret_error->data, 4096);
	r = method_session_start(&fake->a.methods, &peer, tree.nodes, &job, ret_error);
	while (r == 0 && (r = job->step(job, &result, ret_error)) > 0)
		r = 0;
	if (job)
		job->free(job);
	assert_int_equal(r, ret_error->code ? -1 : 0);
	if (r == 0)
		*ret_result = parsed(&result);
	jsonw_done(&result);
	return ret_error->code;
}

static void expect_refusal(const char *params, enum control_code code, const char *part)
{
	struct control_error error;
	json_object *result;

	if (ask(params, &result, &error) != (int)code || !strstr(error.message, part))
		fail_msg("%s: %d: %s", params ? params : "none", error.code, error.message);
	jsonw_done(&error.data);
	assert_int_equal(fake->a.sessions.count, 0);
	assert_int_equal(fake_count(fake, "session.start"), 0);
}

static void test_params(void **state)
{
	static const char *const one[] = { "{}", "{\"during_ms\":1000}",
					   "{\"rule\":\"api\",\"pid\":1}",
					   "{\"rule\":\"api\",\"cgroup\":\"/\"}" };
	static const char *const bad[] = {
		"{\"rule\":1}",
		"{\"cgroup\":null}",
		"{\"pid\":0}",
		"{\"pid\":-1}",
		"{\"pid\":2147483648}",
		"{\"pid\":\"1\"}",
		"{\"pid\":1.5}",
		"{\"rule\":\"api\",\"during_ms\":99}",
		"{\"rule\":\"api\",\"during_ms\":60001}",
		"{\"rule\":\"api\",\"during_ms\":\"1000\"}",
		"{\"rule\":\"api\",\"scope\":\"process\"}",
	};
	static const char *const signals[] = {
		"{\"rule\":\"api\",\"signals\":[]}",
		"{\"rule\":\"api\",\"signals\":\"oncpu\"}",
		"{\"rule\":\"api\",\"signals\":[1]}",
		"{\"rule\":\"api\",\"signals\":[\"cpu\"]}",
		"{\"rule\":\"api\",\"signals\":[\"oncpu\\u0000\"]}",
		"{\"rule\":\"api\",\"signals\":[\"oncpu\",\"oncpu\"]}",
		"{\"rule\":\"api\",\"signals\":[\"auto\",\"oncpu\"]}",
		"{\"rule\":\"api\",\"signals\":[\"oncpu\",\"auto\"]}",
	};
	static const char *const reasons[] = {
		"{\"rule\":\"api\",\"reason\":1}",
		"{\"rule\":\"api\",\"reason\":null}",
		"{\"rule\":\"api\",\"reason\":\"\"}",
		"{\"rule\":\"api\",\"reason\":\"a\\nb\"}",
		"{\"rule\":\"api\",\"reason\":\"a\\u0000b\"}",
		"{\"rule\":\"api\",\"reason\":\"\\u009b31m\"}",
		"{\"rule\":\"api\",\"reason\":\"\\u202e\"}",
	};

	if (!fake)
		skip();
	expect_refusal(NULL, CONTROL_BAD_PARAMS, "rule, cgroup, pid");
	for (size_t i = 0; i < ARRAY_SIZE(one); i++)
		expect_refusal(one[i], CONTROL_BAD_PARAMS, "exactly one of");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refusal(bad[i], CONTROL_BAD_PARAMS, "unknown key or wrong value");
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		expect_refusal(signals[i], CONTROL_BAD_PARAMS, "params.signals: want [\"auto\"]");
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		expect_refusal(reasons[i], CONTROL_BAD_PARAMS, "params.reason: want 1 to 200");
}

static void test_nobody(void **state)
{
	if (!fake)
		skip();
	expect_refusal("{\"rule\":\"none\"}", CONTROL_NOT_FOUND, "no rule of the name none");
	expect_refusal("{\"rule\":\"api\"}", CONTROL_NOT_FOUND, "matches no running process");
	expect_refusal("{\"cgroup\":\"/unit/none\"}", CONTROL_NOT_FOUND, "/unit/none");
	expect_refusal("{\"cgroup\":\"unit\"}", CONTROL_NOT_FOUND, "no cgroup unit");
	expect_refusal("{\"cgroup\":\"/\"}", CONTROL_BAD_PARAMS, "name a pid");
	expect_refusal("{\"pid\":2147483647}", CONTROL_NOT_FOUND, "no process 2147483647");
	assert_int_equal(fake->a.watches.count, 0);
}

/* The session is over and handed on; its lines are written. */
static struct watch *watch_of_session(const struct session *s)
{
	return watches_at(&fake->a.watches, s->target.slot, s->target.epoch);
}

static void end_session(struct session *s)
{
	session_end(&fake->a.sessions, s);
	triggers_step(&fake->a.triggers, clock_mono_ns() + NSEC_PER_SEC);
	assert_int_equal(fake->a.sessions.count, 0);
}

/* A granted one: its answer, its line and its session agree. */
static struct session *expect_session(const char *params, uint64_t during_ms)
{
	_cleanup_json_ json_object *result = NULL, *line = NULL;
	json_object *reason;
	struct control_error error;
	struct session *s = NULL;

	if (ask(params, &result, &error))
		fail_msg("%s: %d: %s", params, error.code, error.message);
	jsonw_done(&error.data);
	assert_int_equal(fake->a.sessions.count, 1);
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		s = fake->a.sessions.running[i] ? fake->a.sessions.running[i] : s;
	assert_non_null(s);
	line = fake_last(fake, "session.start");
	assert_non_null(line);
	assert_string_equal(fake_text(result, "session"), fake_text(line, "session"));
	assert_string_equal(fake_text(result, "cgroup"), group.path);
	assert_int_equal(json_object_get_int64(json_object_object_get(result, "ends_in_ms")),
			 during_ms);
	assert_int_equal(s->during_ms, during_ms);
	assert_int_equal(json_object_array_length(json_object_object_get(result, "sessions")), 1);
	reason = json_object_object_get(json_object_object_get(line, "reason"), "request");
	assert_int_equal(json_object_get_int64(json_object_object_get(reason, "uid")), peer.uid);
	assert_int_equal(json_object_get_int64(json_object_object_get(reason, "pid")), peer.pid);
	return s;
}

static void test_rule(void **state)
{
	struct control_error error;
	json_object *data, *result;
	struct session *s;
	struct watch *w;

	if (!fake)
		skip();
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	s = expect_session("{\"rule\":\"api\"}", 1500);
	assert_string_equal(s->result->rule->name, "api");
	w = watch_of_session(s);
	/* A second one on the same watch is held back, with the time to retry. */
	assert_int_equal(ask("{\"rule\":\"api\"}", &result, &error), CONTROL_HELD);
	data = parsed(&error.data);
	assert_string_equal(fake_text(data, "reason"), "session_running");
	assert_in_range(json_object_get_int64(json_object_object_get(data, "retry_ms")), 1, 1600);
	json_object_put(data);
	jsonw_done(&error.data);
	assert_int_equal(fake_count(fake, "trigger.held"), 1);
	assert_int_equal(fake->a.sessions.count, 1);
	end_session(s);
	assert_ptr_equal(idmap_get(&fake->a.watches.by_cgroup, group.id), w);
	/* The cooldown holds back triggers, not people. */
	end_session(expect_session("{\"rule\":\"api\",\"during_ms\":200}", 200));
}

/* Expects that the request is held back for this reason, and why. */
static void expect_held(const char *params, const char *reason, const char *session)
{
	_cleanup_json_ json_object *data = NULL;
	struct control_error error;
	json_object *result;

	assert_int_equal(ask(params, &result, &error), CONTROL_HELD);
	data = parsed(&error.data);
	jsonw_done(&error.data);
	assert_string_equal(fake_text(data, "reason"), reason);
	assert_string_equal(fake_text(data, "session"), session);
	assert_true(json_object_get_int64(json_object_object_get(data, "retry_ms")) > 0);
}

/* A request with a text keeps the rule's cooldown; one without is a person's. */
static void test_reason(void **state)
{
	static const char text[] = "{\"rule\":\"api\",\"reason\":\"p99 > 500 ms\"}";
	_cleanup_json_ json_object *line = NULL, *held = NULL;
	char first[SESSION_TEXT_BYTES];
	json_object *reason;
	struct session *s;

	if (!fake)
		skip();
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	end_session(expect_session("{\"rule\":\"api\"}", 1500));
	/* That began no cooldown. */
	s = expect_session(text, 1500);
	event_line_session_text(s->result->id, first);
	line = fake_last(fake, "session.start");
	reason = json_object_object_get(json_object_object_get(line, "reason"), "request");
	assert_string_equal(fake_text(reason, "text"), "p99 > 500 ms");
	expect_held(text, "session_running", first);
	end_session(s);
	expect_held(text, "cooldown", first);
	held = fake_last(fake, "trigger.held");
	assert_string_equal(fake_text(held, "trigger"), "request");
	assert_string_equal(fake_text(held, "text"), "p99 > 500 ms");
	end_session(expect_session("{\"rule\":\"api\"}", 1500));
	expect_held(text, "cooldown", first);
}

/* Of two watches one is captured already: the other begins, and the answer counts the first. */
static void test_some_held(void **state)
{
	_cleanup_json_ json_object *result = NULL;
	struct control_error error;
	struct fake_cgroup other;
	char params[160];
	struct session *s;

	if (!fake || !fake_cgroup_make(fake, "other", &other))
		skip();
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	fake_event(fake, EVENT_EXEC, 101, other.id, "node");
	snprintf(params, sizeof(params), "{\"cgroup\":\"%s\"}", group.path);
	s = expect_session(params, 3000);
	assert_int_equal(ask("{\"rule\":\"api\",\"reason\":\"x\"}", &result, &error), 0);
	jsonw_done(&error.data);
	assert_string_equal(fake_text(result, "cgroup"), other.path);
	assert_int_equal(json_object_get_int64(json_object_object_get(result, "held")), 1);
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (fake->a.sessions.running[i] && fake->a.sessions.running[i] != s)
			session_end(&fake->a.sessions, fake->a.sessions.running[i]);
	end_session(s);
	fake_cgroup_remove(&other);
}

/* A watch that was made for the request goes with it. */
static void test_cgroup(void **state)
{
	struct session *s;
	char params[128];

	if (!fake)
		skip();
	snprintf(params, sizeof(params), "{\"cgroup\":\"%s\",\"during_ms\":60000}", group.path);
	s = expect_session(params, 60000);
	assert_null(s->result->rule);
	assert_int_equal(s->target.only_tgid, 0);
	assert_int_equal(fake->a.watches.count, 1);
	assert_true(watch_of_session(s)->requested);
	end_session(s);
	assert_int_equal(fake->a.watches.count, 0);
}

/* No walk has met a cgroup that was made since the last one: the path that was given is known. */
static void test_young_cgroup(void **state)
{
	struct fake_cgroup young;
	struct session *s;
	char params[160];

	if (!fake)
		skip();
	if (!fake_cgroup_make(fake, "young", &young))
		skip();
	/* The answer names it as the kernel does. */
	snprintf(params, sizeof(params), "{\"cgroup\":\"/%s/\",\"during_ms\":1000}", young.path);
	fake_cgroup_remove(&group);
	group = young;
	s = expect_session(params, 1000);
	assert_int_equal(s->result->cgroup_id, young.id);
	end_session(s);
}

static void test_pid(void **state)
{
	struct session *s;
	char params[64];

	if (!fake)
		skip();
	snprintf(params, sizeof(params), "{\"pid\":%d,\"during_ms\":100}", group.pid);
	s = expect_session(params, 100);
	assert_int_equal(s->target.only_tgid, group.pid);
	assert_int_equal(s->result->cgroup_id, group.id);
	end_session(s);
	assert_int_equal(fake->a.watches.count, 0);
}

/* Lists this process behind so many empty records that a reading takes several turns. */
static void list_late(struct task_record *tasks, size_t count)
{
	memset(tasks, 0, count * sizeof(*tasks));
	tasks[count - 1] = (struct task_record){
		.tgid = (uint32_t)getpid(),
		.start_ns = fake_start_ns((uint32_t)getpid()),
		.cgroup_id = fake->a.cgroups.root_id,
		.comm = "unit",
	};
	fake_tasks(fake, tasks, count);
}

static struct control_job *begin_for_pid(struct control_error *error)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	struct control_job *job = NULL;
	struct json_fault fault;
	char params[64];

	snprintf(params, sizeof(params), "{\"pid\":%d,\"during_ms\":100}", getpid());
	assert_int_equal(json_tree_read(params, strlen(params), CONTROL_NESTING, &tree, &fault), 0);
	assert_int_equal(method_session_start(&fake->a.methods, &peer, tree.nodes, &job, error), 0);
	return job;
}

/* Goes on with the job in turns that are over at once; returns the last one's value. */
static int step_job(struct control_job *job, unsigned int most, struct control_error *error)
{
	struct jsonw result;
	int r = 1;

	jsonw_init(&result, 4096);
	for (unsigned int i = 0; r == 1 && i < most; i++) {
		turn_start(1);
		r = job->step(job, &result, error);
		turn_start(0);
		if (r == 1)
			usleep(2 * TURN_LEAST_NS / 1000);
	}
	jsonw_done(&result);
	return r;
}

/*
 * A process in the root cgroup is found among all, in turns. A client that closes the connection
 * before leaves nothing behind.
 */
static void test_root_pid(void **state)
{
	static struct task_record tasks[100 * TASKS_AT_ONCE];
	struct control_error error = { 0 };
	struct control_job *job;
	char path[4096];

	if (!fake || cgroups_of_pid((uint32_t)getpid(), path, sizeof(path)) < 0 ||
	    strcmp(path, "/") != 0)
		skip();
	jsonw_init(&error.data, 4096);
	list_late(tasks, ARRAY_SIZE(tasks));
	job = begin_for_pid(&error);
	assert_int_equal(step_job(job, 1, &error), 1);
	assert_int_equal(fake->a.watches.count, 1);
	job->free(job);
	assert_int_equal(fake->a.watches.count, 0);
	job = begin_for_pid(&error);
	assert_int_equal(step_job(job, 1000, &error), 0);
	job->free(job);
	assert_int_equal(fake->a.sessions.count, 1);
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (fake->a.sessions.running[i])
			end_session(fake->a.sessions.running[i]);
	assert_int_equal(fake->a.watches.count, 0);
	/* It is not listed: it has ended. */
	fake_tasks(fake, tasks, 1);
	job = begin_for_pid(&error);
	assert_int_equal(step_job(job, 1000, &error), -1);
	assert_int_equal(error.code, CONTROL_NOT_FOUND);
	job->free(job);
	assert_int_equal(fake->a.watches.count, 0);
	jsonw_done(&error.data);
}

/* A request widens the slot for the time of its session, and asks for a process no longer. */
static void test_request_leaves_no_trace(void **state)
{
	struct process_key key = { .tgid = (uint32_t)group.pid, .start_ns = 5 };
	struct target target;
	struct session *s;
	struct process *p;
	char params[128];
	struct watch *w;

	if (!fake)
		skip();
	fake_rules(fake, "{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":"
			 "\"node\"},\"capture\":{\"scope\":\"process\"}}]}");
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	w = idmap_get(&fake->a.watches.by_cgroup, group.id);
	assert_int_equal(fake->slots[w->slot].flags, SLOT_BY_PROCESS);
	assert_int_equal(process_get(&fake->a.processes, key.tgid, key.start_ns, &p), 0);
	p->requested = true;
	assert_int_equal(process_targets_match(&fake->a.targets, p), 0);
	snprintf(params, sizeof(params), "{\"pid\":%d,\"during_ms\":100}", group.pid);
	s = expect_session(params, 100);
	assert_true(s->target.shared);
	assert_int_equal(fake->slots[w->slot].flags, 0);
	/* A second request, which is held back, takes nothing away from the first. */
	triggers_release_process(&fake->a.triggers, key.tgid);
	assert_true(p->requested);
	end_session(s);
	assert_int_equal(fake->slots[w->slot].flags, SLOT_BY_PROCESS);
	assert_true(w->by_process);
	assert_false(p->requested);
	assert_int_equal(bpf_map_lookup_elem(fake->a.pins.targets_fd, &key, &target), 0);
	assert_false(target.flags & TARGET_MATCHED);
}

/* All slots are taken: reported, and nothing of the attempt is left. */
static void test_no_slot(void **state)
{
	const struct rule *rule;
	struct watch *w;
	char params[64];

	if (!fake)
		skip();
	rule = &fake->a.active.set->rules->rules[0];
	for (uint64_t i = 0; i < FAKE_SLOTS; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/full-%u/unit", (unsigned int)i);
		cgroups_learn(&fake->a.cgroups, (1ULL << 40) + i, path);
		assert_int_equal(watch_get(&fake->a.watches, (1ULL << 40) + i, 0, &w), 0);
		assert_int_equal(binding_add_cgroup(w, rule), 0);
	}
	snprintf(params, sizeof(params), "{\"pid\":%d}", group.pid);
	expect_refusal(params, CONTROL_INTERNAL, "all slots are taken");
	assert_int_equal(fake->a.watches.count, FAKE_SLOTS);
}

UNIT_TESTS(method_session_start)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_params, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rule, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reason, setup, teardown),
		cmocka_unit_test_setup_teardown(test_some_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cgroup, setup, teardown),
		cmocka_unit_test_setup_teardown(test_young_cgroup, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_root_pid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_request_leaves_no_trace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_slot, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
