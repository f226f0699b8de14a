/* SPDX-License-Identifier: BSD-2-Clause */
/* The methods of the control socket as request lines; session.start has a test of its own. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <bpf/bpf.h>
#include <stdio.h>

#include "consumer/methods/methods.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"

#define ONE  "{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":\"node\"}}]}"
#define NONE "{\"version\":1,\"rules\":[]}"

static struct fake *fake;
static const struct control_peer admin = { .pid = 4711, .uid = 1234, .admin = true };
static const struct control_peer reader = { .pid = 4712, .uid = 1235 };

static int setup(void **state)
{
	char path[96];

	fake = fake_new();
	if (!fake)
		return 0;
	snprintf(path, sizeof(path), "%s/socket", fake->dir);
	assert_int_equal(control_new(fake->a.loop, path, (gid_t)-1, (gid_t)-1, methods_table,
				     &fake->a.methods, &fake->a.control),
			 0);
	fake->a.methods.control = fake->a.control;
	return 0;
}

static int teardown(void **state)
{
	if (!fake)
		return 0;
	control_free(fake->a.control);
	fake_free(fake);
	return 0;
}

/* The whole answer to a request; `params` is put into it. */
static json_object *ask(const struct control_peer *peer, const char *method, json_object *params)
{
	_cleanup_json_ json_object *request = json_object_new_object();
	struct json_tokener *tokener = json_tokener_new();
	json_object *value;
	struct jsonw answer;
	const char *line;

	json_object_object_add(request, "jsonrpc", json_object_new_string("2.0"));
	json_object_object_add(request, "id", json_object_new_int(7));
	json_object_object_add(request, "method", json_object_new_string(method));
	if (params)
		json_object_object_add(request, "params", params);
	line = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
	jsonw_init(&answer, CONTROL_ANSWER_BYTES);
	assert_int_equal(
		control_request(methods_table, &fake->a.methods, peer, line, strlen(line), &answer),
		0);
	value = json_tokener_parse_ex(tokener, answer.data, (int)answer.bytes);
	json_tokener_free(tokener);
	jsonw_done(&answer);
	return value;
}

static json_object *with_text(const char *text)
{
	json_object *params = json_object_new_object();

	json_object_object_add(params, "text", json_object_new_string(text));
	return params;
}

static json_object *at(json_object *object, const char *key)
{
	json_object *value = json_object_object_get(object, key);

	if (!value)
		fail_msg("no %s in %s", key, json_object_to_json_string(object));
	return value;
}

static int64_t number(json_object *object, const char *key)
{
	return json_object_get_int64(at(object, key));
}

static void expect_error(json_object *answer, enum control_code code)
{
	assert_int_equal(number(at(answer, "error"), "code"), code);
	assert_null(json_object_object_get(answer, "result"));
}

/* A client that may only read may change nothing, whatever a method is called. */
static void test_table(void **state)
{
	static const char *const reading[] = { "status", "rules.get", "rules.check", "watches",
					       "sessions" };

	if (!fake)
		skip();
	for (const struct control_method *m = methods_table; m->name; m++) {
		_cleanup_json_ json_object *answer = NULL;
		bool reads = false;

		for (size_t i = 0; i < ARRAY_SIZE(reading); i++)
			reads = reads || !strcmp(reading[i], m->name);
		assert_int_equal(m->changes, !reads);
		if (!m->changes)
			continue;
		answer = ask(&reader, m->name, NULL);
		expect_error(answer, CONTROL_FORBIDDEN);
	}
}

static void expect_no_stop(const char *id, enum control_code code)
{
	json_object *params = json_object_new_object();
	_cleanup_json_ json_object *answer = NULL;

	json_object_object_add(params, "session", json_object_new_string(id));
	answer = ask(&admin, "session.stop", params);
	expect_error(answer, code);
}

/* What is no session's id is refused; so is one that does not run. */
static void test_stop(void **state)
{
	static const char *const ids[] = { "", "1", "000000000000123G", "00000000000012345" };

	if (!fake)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		expect_no_stop(ids[i], CONTROL_BAD_PARAMS);
	expect_no_stop("0000000000001234", CONTROL_NOT_FOUND);
}

static void test_status(void **state)
{
	_cleanup_json_ json_object *answer = NULL;
	json_object *result, *rings;

	if (!fake)
		skip();
	fake_rules(fake, ONE);
	fake->a.telemetry.start_ns = clock_mono_ns() - 5 * NSEC_PER_SEC;
	answer = ask(&reader, "status", NULL);
	result = at(answer, "result");
	assert_string_equal(fake_text(result, "version"), TROCAR_VERSION);
	assert_in_range(number(result, "uptime_ms"), 5000, 60000);
	assert_int_equal(number(result, "generation"), fake->a.active.set->generation);
	assert_int_equal(number(result, "rules"), 1);
	assert_int_equal(number(result, "watches"), 0);
	assert_int_equal(number(result, "sessions_running"), 0);
	rings = at(result, "rings");
	assert_int_equal(json_object_array_length(rings), 3);
	assert_string_equal(fake_text(json_object_array_get_idx(rings, 1), "name"), "events");
	assert_int_equal(number(json_object_array_get_idx(rings, 1), "size_bytes"),
			 FAKE_RING_BYTES);
	assert_string_equal(fake_text(at(result, "output"), "kind"), "file");
	assert_int_equal(number(at(result, "output"), "dropped_lines"), 0);
	assert_true(number(at(result, "memory"), "resident_bytes") > 1 << 20);
	assert_int_equal(number(at(result, "control"), "clients"), 0);
	at(result, "symbols");
}

/* The result of rules.get is an equal rule set. */
static void test_get(void **state)
{
	_cleanup_json_ json_object *answer = NULL, *again = NULL, *set = NULL;
	json_object *rules, *rule;

	if (!fake)
		skip();
	fake_rules(fake, ONE);
	answer = ask(&reader, "rules.get", NULL);
	rules = at(at(answer, "result"), "rules");
	assert_string_equal(fake_text(at(answer, "result"), "source"), "file:/unit/rules.json");
	assert_int_equal(number(at(answer, "result"), "generation"),
			 fake->a.active.set->generation);
	set = json_object_is_type(rules, json_type_array) ? json_object_new_object()
							  : json_object_get(rules);
	if (json_object_is_type(rules, json_type_array)) {
		json_object_object_add(set, "version", json_object_new_int(1));
		json_object_object_add(set, "rules", json_object_get(rules));
	}
	fake_rules(fake, json_object_to_json_string(set));
	assert_int_equal(fake->a.active.set->rules->count, 1);
	again = ask(&reader, "rules.get", NULL);
	assert_true(json_object_equal(at(at(again, "result"), "rules"), rules));
	rule = json_object_array_get_idx(at(set, "rules"), 0);
	assert_string_equal(fake_text(at(rule, "match"), "comm"), "node");
}

static bool empty(int fd)
{
	struct comm_key key;

	return bpf_map_get_next_key(fd, NULL, &key) < 0;
}

/* A check reports faults or matches, and changes nothing. */
static void test_check(void **state)
{
	_cleanup_json_ json_object *fine = NULL, *faulty = NULL, *none = NULL;
	const struct ruleset *before;
	json_object *data;
	uint32_t active;

	if (!fake)
		skip();
	before = fake->a.active.set;
	active = fake->control.active;
	fine = ask(&reader, "rules.check", with_text(ONE));
	assert_true(json_object_get_boolean(at(at(fine, "result"), "ok")));
	assert_int_equal(number(at(fine, "result"), "count"), 1);
	assert_int_equal(number(at(fine, "result"), "matches_omitted"), 0);
	faulty = ask(&reader, "rules.check", with_text("{\"version\":2,\"rules\":[{}]}"));
	expect_error(faulty, CONTROL_REJECTED);
	data = at(at(faulty, "error"), "data");
	assert_int_equal(number(data, "fault_count"), json_object_array_length(at(data, "faults")));
	assert_true(number(data, "fault_count") >= 2);
	none = ask(&reader, "rules.check", json_object_new_object());
	expect_error(none, CONTROL_BAD_PARAMS);
	assert_ptr_equal(fake->a.active.set, before);
	assert_int_equal(fake->control.active, active);
	assert_true(empty(fake->a.pins.rules_fd[!active]));
	assert_int_equal(fake_count(fake, "rules.rejected"), 0);
	assert_int_equal(fake_count(fake, "rules.applied"), 1);
}

static void test_set(void **state)
{
	_cleanup_json_ json_object *answer = NULL, *line = NULL, *refused = NULL, *rejected = NULL,
				   *none = NULL;

	if (!fake)
		skip();
	answer = ask(&admin, "rules.set", with_text(ONE));
	assert_int_equal(number(at(answer, "result"), "count"), 1);
	assert_int_equal(number(at(answer, "result"), "generation"),
			 fake->a.active.set->generation);
	assert_int_equal(fake->a.active.set->rules->count, 1);
	line = fake_last(fake, "rules.applied");
	assert_string_equal(fake_text(line, "source"), "socket");
	assert_int_equal(number(at(line, "peer"), "uid"), admin.uid);
	assert_int_equal(number(at(line, "peer"), "pid"), admin.pid);
	refused = ask(&admin, "rules.set", with_text("{"));
	expect_error(refused, CONTROL_REJECTED);
	rejected = fake_last(fake, "rules.rejected");
	assert_string_equal(fake_text(rejected, "source"), "socket");
	assert_int_equal(number(at(rejected, "peer"), "uid"), admin.uid);
	assert_int_equal(fake->a.active.set->rules->count, 1);
	/* No text at all is no rule set that was rejected. */
	none = ask(&admin, "rules.set", NULL);
	expect_error(none, CONTROL_BAD_PARAMS);
	assert_int_equal(fake_count(fake, "rules.rejected"), 1);
}

static void test_watches(void **state)
{
	_cleanup_json_ json_object *before = NULL, *after = NULL, *sessions = NULL;
	json_object *one;

	if (!fake)
		skip();
	before = ask(&reader, "watches", NULL);
	assert_int_equal(json_object_array_length(at(before, "result")), 0);
	fake_rules(fake, ONE);
	cgroups_learn(&fake->a.cgroups, 1ULL << 40, "/unit/methods");
	fake_event(fake, EVENT_EXEC, 100, 1ULL << 40, "node");
	after = ask(&reader, "watches", NULL);
	assert_int_equal(json_object_array_length(at(after, "result")), 1);
	one = json_object_array_get_idx(at(after, "result"), 0);
	assert_string_equal(fake_text(one, "cgroup"), "/unit/methods");
	sessions = ask(&reader, "sessions", NULL);
	at(sessions, "result");
}

UNIT_TESTS(methods)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_status, setup, teardown),
		cmocka_unit_test_setup_teardown(test_get, setup, teardown),
		cmocka_unit_test_setup_teardown(test_check, setup, teardown),
		cmocka_unit_test_setup_teardown(test_set, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watches, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
