/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/path_wait.h"

#include "tests/unit/consumer/testing/group_testing.h"

#include <stdio.h>

#include "consumer/discovery/process_events.h"
#include "consumer/discovery/process_scan.h"
#include "shared/tools/clock.h"

#define NOBODY 0x7fffffffffff
#define API    "{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":\"node\"}}]}"

static int setup(void **state)
{
	group_begin("waiting");
	if (fake)
		fake_rules(fake, API);
	return 0;
}

/* Puts an event and drains it, and looks for no cgroup. */
static void meet(enum event_kind kind, uint32_t tgid, uint64_t cgroup_id)
{
	struct event e = {
		.start_ns = fake_start_ns(tgid),
		.cgroup_id = cgroup_id,
		.kind = kind,
		.tgid = tgid,
		.generation = fake->a.active.set->generation,
		.comm = "node",
	};

	fake_put(&fake->events, &e, sizeof(e));
	process_events_drain(&fake->a.discovery);
	assert_false(fake->a.pins.events.cut);
}

static struct process *known(uint32_t tgid)
{
	return process_find(&fake->a.processes, tgid, fake_start_ns(tgid));
}

/* Waits are over when so many turns are. Returns how many. */
static unsigned int step_to_end(void)
{
	struct discovery *d = &fake->a.discovery;
	unsigned int turns = 0;

	for (; d->waiting.first; turns++) {
		d->cgroups->look.due_ns = 0;
		path_wait_step(d);
	}
	return turns;
}

/* The line and the watch wait for the path, and later events of the process wait behind it. */
static void test_process(void **state)
{
	_cleanup_json_ json_object *line = NULL;

	if (!fake)
		skip();
	meet(EVENT_FORK, 100, group.id);
	meet(EVENT_EXEC, 100, group.id);
	assert_null(known(100));
	assert_int_equal(fake->a.discovery.waiting.count, 2);
	meet(EVENT_EXIT, 100, group.id);
	/* Somebody else's does not wait for it. */
	cgroups_learn(&fake->a.cgroups, 1ULL << 40, "/other");
	meet(EVENT_FORK, 101, 1ULL << 40);
	assert_non_null(known(101));
	assert_int_equal(fake->a.discovery.waiting.count, 3);
	assert_true(step_to_end() >= 1);
	assert_non_null(watch_of(group.id));
	assert_true(known(100)->gone_ns);
	assert_int_equal(fake_count(fake, "process.exit"), 1);
	line = fake_last(fake, "process.exit");
	assert_string_equal(fake_text(line, "cgroup"), group.path);
}

static void test_match_line(void **state)
{
	_cleanup_json_ json_object *line = NULL;

	if (!fake)
		skip();
	meet(EVENT_FORK, 100, group.id);
	step_to_end();
	line = fake_last(fake, "process.match");
	assert_string_equal(fake_text(line, "cgroup"), group.path);
	assert_string_equal(fake_text(line, "found"), "fork");
}

/* A cgroup that no walk finds: its process is reported without a path. */
static void test_not_found(void **state)
{
	_cleanup_json_ json_object *line = NULL;

	if (!fake)
		skip();
	meet(EVENT_FORK, 100, NOBODY);
	assert_null(known(100));
	/* Nothing is watched, and no event may follow: the look does not wait for one. */
	assert_in_range(fake->a.schedule.drain_due_ns, 1, clock_mono_ns() + NSEC_PER_SEC);
	step_to_end();
	assert_non_null(known(100));
	line = fake_last(fake, "process.match");
	assert_non_null(line);
	assert_null(json_object_object_get(line, "cgroup"));
	/* The next one of that cgroup does not wait again. */
	meet(EVENT_FORK, 101, NOBODY);
	assert_non_null(known(101));
}

/* A cgroup that a rule selects, and that an event reports without its path. */
static void test_cgroup(void **state)
{
	char rules[256];

	if (!fake)
		skip();
	snprintf(
		rules, sizeof(rules),
		"{\"version\":1,\"rules\":[{\"name\":\"all\",\"match\":{\"cgroup_prefix\":\"%s\"}}]}",
		group.path);
	fake_rules(fake, rules);
	if (watch_of(group.id))
		watch_remove(watch_of(group.id), "cgroup_empty");
	cgroups_forget(&fake->a.cgroups, group.id);
	cgroups_look_again(&fake->a.cgroups);
	meet(EVENT_POPULATED, 0, group.id);
	assert_null(watch_of(group.id));
	assert_int_equal(fake->a.discovery.waiting.count, 1);
	step_to_end();
	assert_non_null(watch_of(group.id));
}

/* Whoever finds no room does not wait, and a scan is due that finds it again. */
static void test_bound(void **state)
{
	struct discovery *d = &fake->a.discovery;

	if (!fake)
		skip();
	for (uint32_t i = 0; i < PATH_WAIT_MAX; i++)
		meet(EVENT_FORK, 1000 + i, NOBODY);
	assert_int_equal(d->waiting.count, PATH_WAIT_MAX);
	assert_int_equal(d->processes->by_id.count, 0);
	meet(EVENT_FORK, 100, NOBODY);
	assert_int_equal(d->waiting.count, PATH_WAIT_MAX);
	assert_non_null(known(100));
	/* Who waits already is not let down: its end has a place behind it. */
	meet(EVENT_EXIT, 1000, NOBODY);
	assert_int_equal(d->waiting.count, PATH_WAIT_MAX + 1);
	for (int i = 0; i < 10000; i++)
		meet(EVENT_RENAME, 1001, NOBODY);
	assert_in_range(d->waiting.count, PATH_WAIT_MAX + 1, 4 * PATH_WAIT_MAX);
	path_wait_done(d);
	assert_int_equal(d->waiting.count, 0);
}

UNIT_TESTS(path_wait)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_match_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_found, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cgroup, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bound, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
