/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that end, those that only leave, and their lines and state. */
#include "tests/unit/consumer/testing/group_testing.h"

#include <bpf/bpf.h>
#include <stdio.h>

#include "consumer/discovery/process_match.h"
#include "shared/tools/clock.h"

#define RULES                                               \
	"{\"version\":1,\"rules\":["                        \
	"{\"name\":\"api\",\"match\":{\"comm\":\"node\"}}," \
	"{\"name\":\"workers\",\"match\":{\"comm_prefix\":\"worker-\"}}]}"

static int setup(void **state)
{
	group_begin("leaving");
	return 0;
}

static struct process *made(uint32_t tgid)
{
	struct process *p;

	assert_int_equal(process_get(&fake->a.processes, tgid, 5, &p), 0);
	return p;
}

/* Once, however often it is seen to be gone. */
static void test_announced(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	p = made(100);
	p->announced = true;
	strcpy(p->comm, "node");
	process_match_gone(&fake->a.discovery, p);
	process_match_gone(&fake->a.discovery, p);
	assert_int_equal(fake->a.processes.gone, 1);
	assert_int_equal(fake_count(fake, "process.exit"), 1);
}

/* Who was never announced leaves without a word. */
static void test_unannounced(void **state)
{
	if (!fake)
		skip();
	process_match_gone(&fake->a.discovery, made(100));
	assert_int_equal(fake_count(fake, "process.exit"), 0);
}

/* What the next scan lists: one process, and all else has ended. */
static void list_one(uint32_t tgid, uint64_t cgroup_id, const char *comm)
{
	struct task_record task = { .tgid = tgid,
				    .start_ns = fake_start_ns(tgid),
				    .cgroup_id = cgroup_id };

	snprintf(task.comm, sizeof(task.comm), "%s", comm);
	fake_tasks(fake, &task, 1);
}

/* The process lives and was reported as left for that reason, and not as ended. */
static void assert_left(const char *reason, size_t count)
{
	_cleanup_json_ json_object *line = fake_last(fake, "process.left");

	assert_int_equal(fake_count(fake, "process.exit"), 0);
	assert_int_equal(fake_count(fake, "process.left"), count);
	assert_non_null(line);
	assert_string_equal(fake_text(line, "reason"), reason);
}

/*
 * Only an end is an end: a process with another name or cgroup has left, and is there at once when
 * it comes back, with its present mappings.
 */
static void test_left_and_back(void **state)
{
	struct fake_cgroup other = { 0 };
	struct process *p;
	char rules[256];

	if (!fake || !fake_cgroup_make(fake, "elsewhere", &other))
		skip();
	snprintf(rules, sizeof(rules),
		 "{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":\"node\","
		 "\"cgroup_prefix\":\"%s\"}}]}",
		 group.path);
	fake_rules(fake, rules);
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	fake_event(fake, EVENT_UNNAME, 100, group.id, "sleep");
	assert_left("renamed", 1);
	fake_event(fake, EVENT_RENAME, 100, group.id, "node");
	assert_int_equal(fake_count(fake, "process.match"), 2);
	/* No event reports a move: the scan lists it elsewhere. */
	list_one(100, other.id, "node");
	fake_scan(fake);
	assert_left("moved", 2);
	p = process_find(&fake->a.processes, 100, fake_start_ns(100));
	assert_non_null(p);
	assert_true(p->left_ns && !p->gone_ns);
	assert_int_equal(target_flags(100), ~0u);
	list_one(100, group.id, "node");
	fake_scan(fake);
	assert_int_equal(fake_count(fake, "process.match"), 3);
	assert_int_equal(p->left_ns, 0);
	assert_int_equal(fake->a.processes.gone, 0);
	assert_ptr_equal(p->watch, watch_of(group.id));
	assert_true(target_flags(100) & TARGET_MATCHED);
	assert_true(p->tried_ns > 0);
	fake_event(fake, EVENT_EXIT, 100, group.id, "node");
	assert_int_equal(fake_count(fake, "process.exit"), 1);
	fake_cgroup_remove(&other);
}

/* Neither does a removed rule end a process, nor the last one. */
static void test_left_by_its_rule(void **state)
{
	_cleanup_json_ json_object *line = NULL;

	if (!fake)
		skip();
	list_one(100, group.id, "node");
	fake_rules(fake, RULES);
	assert_int_equal(fake_count(fake, "process.match"), 1);
	fake_rules(fake, "{\"version\":1,\"rules\":[]}");
	assert_left("rule_gone", 1);
	line = fake_last(fake, "process.left");
	assert_null(fake_text(line, "rule"));
	fake_rules(fake, RULES);
	assert_int_equal(fake_count(fake, "process.match"), 2);
	assert_non_null(process_find(&fake->a.processes, 100, fake_start_ns(100))->watch);
}

/* Within a scope of the loader an unlisted process may live outside of it. */
static void test_not_seen(void **state)
{
	if (!fake)
		skip();
	list_one(100, group.id, "node");
	fake_rules(fake, RULES);
	fake->a.scope.count = 1;
	fake_tasks(fake, NULL, 0);
	fake_scan(fake);
	assert_left("not_seen", 1);
	/* It is forgotten in time, as one that has ended. */
	processes_sweep(&fake->a.processes,
			clock_mono_ns() + (PROCESS_LINGER_MS + 1000) * NSEC_PER_MSEC);
	assert_null(process_find(&fake->a.processes, 100, fake_start_ns(100)));
	fake->a.scope.count = 0;
}

/*
 * A process that ended before its start was handled: the kernel side has deleted its entry, and the
 * consumer leaves none behind, or the dead would fill the table.
 */
static void test_dead_leave_no_target(void **state)
{
	if (!fake)
		skip();
	fake_rules(fake, RULES);
	for (uint32_t tgid = 100; tgid < 100 + 3 * FAKE_PROCESSES; tgid++) {
		fake_event(fake, EVENT_EXEC, tgid, group.id, "node");
		assert_true(target_flags(tgid) & TARGET_MATCHED);
		fake_event(fake, EVENT_EXIT, tgid, group.id, "node");
		assert_int_equal(target_flags(tgid), ~0u);
	}
	/* One without a reported exit: the scan does not list it. */
	fake_event(fake, EVENT_FORK, 99, group.id, "node");
	fake_scan(fake);
	assert_int_equal(target_flags(99), ~0u);
}

/* A process that renames itself out of its rule keeps its image: what is known of its mappings
 * stays. */
static void test_rename_is_no_exec(void **state)
{
	char rules[512];
	struct process *p;

	if (!fake)
		skip();
	snprintf(
		rules, sizeof(rules),
		"{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":\"node\"},\"on\":\"exec\"},"
		"{\"name\":\"place\",\"match\":{\"cgroup_prefix\":\"%s\"}}]}",
		group.path);
	fake_rules(fake, rules);
	fake_event(fake, EVENT_FORK, 100, group.id, "node");
	p = process_find(&fake->a.processes, 100, fake_start_ns(100));
	fake_event(fake, EVENT_UNNAME, 100, group.id, "sleep");
	assert_string_equal(p->rule->name, "place");
	assert_int_equal(p->exec_ns, 0);
	fake_event(fake, EVENT_RENAME, 100, group.id, "node");
	assert_int_equal(p->exec_ns, 0);
	assert_int_equal(fake_count(fake, "session.start"), 0);
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	assert_true(p->exec_ns > 0);
	assert_int_equal(fake_count(fake, "session.start"), 1);
}

/*
 * The kernel side matches names: of a rule without one it samples all that is in the cgroup, or it
 * would pass over every process until a scan has found it.
 */
static void test_scope_without_a_name(void **state)
{
	char rules[512];
	struct watch *w;

	if (!fake)
		skip();
	snprintf(
		rules, sizeof(rules),
		"{\"version\":1,\"rules\":[{\"name\":\"place\",\"match\":{\"cgroup_prefix\":\"%s\"},"
		"\"capture\":{\"scope\":\"process\"}},"
		"{\"name\":\"api\",\"match\":{\"comm\":\"node\"},\"capture\":{\"scope\":\"process\"}}]}",
		group.path);
	fake_rules(fake, rules);
	w = watch_of(group.id);
	assert_non_null(w);
	assert_int_equal(fake->slots[w->slot].flags, 0);
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	assert_int_equal(fake->slots[w->slot].flags, 0);
}

UNIT_TESTS(process_match_gone)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_announced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unannounced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scope_without_a_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rename_is_no_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dead_leave_no_target, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_by_its_rule, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_and_back, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
