/* SPDX-License-Identifier: BSD-2-Clause */
/* agent.start: the agent's features on this machine, and the missing ones. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include "consumer/telemetry/agent_events.h"

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
	return 0;
}

/* Returns the entry of the feature in `missing`, or NULL. */
static json_object *find_missing(json_object *line, const char *feature)
{
	json_object *missing = json_object_object_get(line, "missing");

	for (size_t i = 0; i < json_object_array_length(missing); i++) {
		json_object *one = json_object_array_get_idx(missing, i);

		if (!strcmp(fake_text(one, "feature"), feature))
			return one;
	}
	return NULL;
}

static json_object *start_line(const char *processes, const char *cgroups, const char *proc)
{
	const struct agent_gap gap = {};

	fake->a.host.hidden_processes = processes;
	fake->a.host.hidden_proc = fake->a.host.shifted_clocks = proc;
	fake->a.host.hidden_cgroups = cgroups;
	agent_events_start(&fake->a.telemetry, &gap);
	return fake_last(fake, "agent.start");
}

/* In namespaces of its own the agent sees a part of the host: it reports it, and the cost. */
static void test_namespaces(void **state)
{
	_cleanup_json_ json_object *whole = NULL, *part = NULL;
	json_object *one;

	if (!fake)
		skip();
	whole = start_line(NULL, NULL, NULL);
	assert_null(find_missing(whole, "host_pids"));
	assert_null(find_missing(whole, "host_cgroups"));
	assert_null(find_missing(whole, "proc_pids"));
	assert_null(find_missing(whole, "host_clocks"));
	part = start_line("processes are hidden", "cgroups are hidden", "hidepid=");
	one = find_missing(part, "host_pids");
	assert_non_null(one);
	assert_string_equal(fake_text(one, "reason"), "processes are hidden");
	assert_non_null(strstr(fake_text(one, "lost"), "not found"));
	one = find_missing(part, "host_cgroups");
	assert_non_null(one);
	assert_string_equal(fake_text(one, "reason"), "cgroups are hidden");
	assert_non_null(strstr(fake_text(one, "lost"), "not watched"));
	one = find_missing(part, "proc_pids");
	assert_non_null(one);
	assert_string_equal(fake_text(one, "reason"), "hidepid=");
	assert_non_null(strstr(fake_text(one, "lost"), "gid="));
	assert_non_null(find_missing(part, "host_clocks"));
}

/* In a time namespace all samples are stale: the first line names the reason. */
static void test_shifted_clocks(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	json_object *one;

	if (!fake)
		skip();
	line = start_line(NULL, NULL, "clocks are shifted");
	one = find_missing(line, "host_clocks");
	assert_non_null(one);
	assert_string_equal(fake_text(one, "reason"), "clocks are shifted");
	assert_non_null(strstr(fake_text(one, "lost"), "stale"));
}

UNIT_TESTS(agent_events)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_namespaces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shifted_clocks, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
