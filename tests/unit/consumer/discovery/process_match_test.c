/* SPDX-License-Identifier: BSD-2-Clause */
/* From events and scans to matched processes and watches, with real maps and real cgroups. */
#include "tests/unit/consumer/testing/group_testing.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "consumer/discovery/process_events.h"
#include "consumer/discovery/process_match.h"
#include "consumer/watch/binding.h"
#include "shared/tools/cleanup.h"

#define RULES                                                                             \
	"{\"version\":1,\"rules\":["                                                      \
	"{\"name\":\"api\",\"match\":{\"comm\":\"node\"},\"labels\":{\"team\":\"pay\"}}," \
	"{\"name\":\"workers\",\"match\":{\"comm_prefix\":\"worker-\"}}]}"

static int setup(void **state)
{
	group_begin("matching");
	return 0;
}

/* The slot of the watch that the programs find on that very cgroup, or NO_SLOT. */
static uint32_t slot_in_kernel(uint64_t cgroup_id)
{
	struct watch_entry entry;

	if (bpf_map_lookup_elem(fake->a.pins.watches_fd, &cgroup_id, &entry) < 0)
		return NO_SLOT;
	return entry.flags & WATCH_OWN ? entry.slot : NO_SLOT;
}

/* As if loose bindings there had been so for BINDING_LINGER_NS. */
static void linger_passes(uint64_t cgroup_id)
{
	struct watch *w = watch_of(cgroup_id);

	for (size_t i = 0; w && i < w->n_bindings; i++)
		if (w->bindings[i].loose_ns)
			w->bindings[i].loose_ns -= BINDING_LINGER_NS;
	bindings_expire(&fake->a.watches);
}

static void test_exec(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct process *p;

	if (!fake)
		skip();
	fake_rules(fake, RULES);
	assert_true(fake->control.events_on);
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	p = process_find(&fake->a.processes, 100, fake_start_ns(100));
	assert_non_null(p);
	assert_string_equal(p->rule->name, "api");
	assert_ptr_equal(p->watch, watch_of(group.id));
	assert_string_equal(p->watch->path, group.path);
	assert_int_equal(slot_in_kernel(group.id), p->watch->slot);
	assert_int_equal(fake->slots[p->watch->slot].state, SLOT_RECORDER);
	assert_int_equal(fake->control.armed, 1);
	assert_true(target_flags(100) & TARGET_MATCHED);
	line = fake_last(fake, "process.match");
	assert_non_null(line);
	assert_string_equal(fake_text(line, "found"), "exec");
	assert_string_equal(fake_text(line, "rule"), "api");
	assert_string_equal(fake_text(line, "cgroup"), group.path);
	assert_int_equal(fake_count(fake, "watch.start"), 1);
}

/* "node" is not "nodejs": the kernel's word on it is checked again here. */
static void test_exact(void **state)
{
	if (!fake)
		skip();
	fake_rules(fake, RULES);
	fake_event(fake, EVENT_EXEC, 100, group.id, "nodejs");
	fake_event(fake, EVENT_EXEC, 101, group.id, "worker");
	assert_null(process_find(&fake->a.processes, 100, fake_start_ns(100)));
	assert_null(watch_of(group.id));
	fake_event(fake, EVENT_EXEC, 102, group.id, "worker-15bytes_");
	assert_non_null(process_find(&fake->a.processes, 102, fake_start_ns(102)));
	assert_int_equal(fake_count(fake, "process.match"), 1);
}

/* Two processes in one cgroup are one watch; it lives as long as one of them. */
static void test_two_in_one(void **state)
{
	if (!fake)
		skip();
	fake_rules(fake, RULES);
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	fake_event(fake, EVENT_FORK, 101, group.id, "node");
	assert_int_equal(fake->a.watches.count, 1);
	fake_event(fake, EVENT_EXIT, 100, group.id, "node");
	assert_non_null(watch_of(group.id));
	fake_event(fake, EVENT_EXIT, 101, group.id, "node");
	linger_passes(group.id);
	assert_null(watch_of(group.id));
	assert_int_equal(slot_in_kernel(group.id), NO_SLOT);
	assert_int_equal(fake->control.armed, 0);
	assert_int_equal(fake_count(fake, "process.exit"), 2);
	assert_int_equal(fake_count(fake, "watch.stop"), 1);
	/* A second exit of the same process adds nothing. */
	fake_event(fake, EVENT_EXIT, 101, group.id, "node");
	assert_int_equal(fake_count(fake, "process.exit"), 2);
}

static void test_rename(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	fake_rules(fake, RULES);
	fake_event(fake, EVENT_RENAME, 100, group.id, "worker-1");
	p = process_find(&fake->a.processes, 100, fake_start_ns(100));
	assert_non_null(p);
	assert_string_equal(p->rule->name, "workers");
	fake_event(fake, EVENT_RENAME, 100, group.id, "node");
	assert_string_equal(p->rule->name, "api");
	assert_non_null(watch_of(group.id));
	fake_event(fake, EVENT_UNNAME, 100, group.id, "sleep");
	assert_null(p->rule);
	linger_passes(group.id);
	assert_null(watch_of(group.id));
	assert_false(target_flags(100) & TARGET_MATCHED);
}

/* A pid that is used again is another process. */
static void test_pid_reuse(void **state)
{
	struct event e = { .kind = EVENT_EXIT, .tgid = 100, .comm = "node" };
	struct process *p;

	if (!fake)
		skip();
	fake_rules(fake, RULES);
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	p = process_find(&fake->a.processes, 100, fake_start_ns(100));
	/* The exit of an earlier one with this pid. */
	e.start_ns = fake_start_ns(100) - 1;
	fake_put(&fake->events, &e, sizeof(e));
	fake_drain_events(fake);
	assert_int_equal(p->gone_ns, 0);
	assert_non_null(watch_of(group.id));
}

static void test_cgroup_removed(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	fake_rules(fake, RULES);
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	fake_cgroup_event(fake, EVENT_RMDIR, group.id, group.path);
	assert_null(watch_of(group.id));
	p = process_find(&fake->a.processes, 100, fake_start_ns(100));
	assert_non_null(p);
	assert_null(p->watch);
	fake_event(fake, EVENT_EXIT, 100, group.id, "node");
	assert_int_equal(fake->a.watches.count, 0);
}

static void test_by_cgroup(void **state)
{
	char rules[256];
	struct watch *w;

	if (!fake)
		skip();
	snprintf(
		rules, sizeof(rules),
		"{\"version\":1,\"rules\":[{\"name\":\"unit\",\"match\":{\"cgroup_prefix\":\"%s\"}}]}",
		group.path);
	/* The scan that follows a change of rules finds it. */
	fake_rules(fake, rules);
	w = watch_of(group.id);
	assert_non_null(w);
	assert_true(w->bindings[0].by_cgroup);
	/* Said again, it is the same watch. */
	fake_cgroup_event(fake, EVENT_POPULATED, group.id, group.path);
	assert_ptr_equal(watch_of(group.id), w);
	assert_int_equal(fake_count(fake, "watch.start"), 1);
	/* Emptied without an event, the next scan lets it go. */
	fake_cgroup_empty(&group);
	usleep(20000);
	fake_scan(fake);
	assert_null(watch_of(group.id));
}

static void test_scan(void **state)
{
	struct task_record tasks[2] = {
		{ .tgid = 100,
		  .start_ns = fake_start_ns(100),
		  .cgroup_id = group.id,
		  .comm = "node" },
		{ .tgid = 101,
		  .start_ns = fake_start_ns(101),
		  .cgroup_id = group.id,
		  .comm = "bash" },
	};
	_cleanup_json_ json_object *line = NULL;

	if (!fake)
		skip();
	fake_tasks(fake, tasks, 2);
	fake_rules(fake, RULES);
	assert_non_null(watch_of(group.id));
	line = fake_last(fake, "process.match");
	assert_string_equal(fake_text(line, "found"), "scan");
	/* A scan that finds the same adds nothing. */
	fake_scan(fake);
	assert_int_equal(fake_count(fake, "process.match"), 1);
	/* What is listed no more has gone, though its exit was lost. */
	fake_tasks(fake, tasks + 1, 1);
	fake_scan(fake);
	linger_passes(group.id);
	assert_null(watch_of(group.id));
	assert_int_equal(fake_count(fake, "process.exit"), 1);
}

/* A moved process leaves the watch of the old cgroup for one of the new. */
static void test_move(void **state)
{
	struct fake_cgroup other;

	if (!fake || !fake_cgroup_make(fake, "matching-2", &other))
		skip();
	fake_rules(fake, RULES);
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	fake_event(fake, EVENT_EXEC, 100, other.id, "node");
	linger_passes(group.id);
	assert_null(watch_of(group.id));
	assert_non_null(watch_of(other.id));
	fake_cgroup_remove(&other);
}

/* In the root of the hierarchy a match is watched by process, never the whole machine. */
static void test_root(void **state)
{
	struct watch *w;

	if (!fake)
		skip();
	fake_rules(fake, RULES);
	fake_event(fake, EVENT_EXEC, 100, fake->a.cgroups.root_id, "node");
	w = watch_of(fake->a.cgroups.root_id);
	assert_non_null(w);
	assert_true(w->root && w->by_process);
	assert_int_equal(fake->slots[w->slot].flags, SLOT_BY_PROCESS | SLOT_NO_KTHREADS);
}

static void test_bad_records(void **state)
{
	static const uint8_t garbage[8] = { 1, 2, 3 };
	struct event e = { .kind = EVENT_KINDS_END_ };

	if (!fake)
		skip();
	fake_rules(fake, RULES);
	fake_put(&fake->events, garbage, sizeof(garbage));
	fake_put(&fake->events, &e, sizeof(e));
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	assert_int_equal(fake->a.counts.bad_records, 2);
	assert_non_null(watch_of(group.id));
}

/* A new set without the rule ends watches that only it kept, one with the same rule does not. */
static void test_rules_change(void **state)
{
	struct task_record task = {
		.tgid = 100, .start_ns = fake_start_ns(100), .cgroup_id = group.id, .comm = "node"
	};
	uint32_t active, epoch;
	struct watch *w;

	if (!fake)
		skip();
	fake_tasks(fake, &task, 1);
	fake_rules(fake, RULES);
	w = watch_of(group.id);
	epoch = w->epoch;
	active = fake->control.active;
	fake_rules(fake, RULES);
	assert_ptr_equal(watch_of(group.id), w);
	assert_int_equal(w->epoch, epoch);
	assert_int_not_equal(fake->control.active, active);
	assert_int_equal(fake->control.generation, fake->a.active.set->generation);
	assert_int_equal(w->bindings[0].processes, 1);
	assert_int_equal(fake_count(fake, "process.match"), 1);
	fake_rules(fake,
		   "{\"version\":1,\"rules\":[{\"name\":\"other\",\"match\":{\"comm\":\"x\"}}]}");
	assert_null(watch_of(group.id));
	assert_false(target_flags(100) & TARGET_MATCHED);
}

/* A process that takes and drops its name all the time makes one watch, which outlives it a little.
 */
static void test_flapping(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct watch *w;

	if (!fake)
		skip();
	fake_rules(fake, RULES);
	fake_event(fake, EVENT_RENAME, 100, group.id, "node");
	w = watch_of(group.id);
	assert_non_null(w);
	for (int i = 0; i < 20; i++) {
		fake_event(fake, EVENT_UNNAME, 100, group.id, "ebb");
		assert_int_equal(w->bindings[0].processes, 0);
		bindings_expire(&fake->a.watches);
		fake_event(fake, EVENT_RENAME, 100, group.id, "node");
		assert_ptr_equal(watch_of(group.id), w);
	}
	assert_int_equal(fake_count(fake, "watch.start"), 1);
	assert_int_equal(fake_count(fake, "watch.stop"), 0);
	linger_passes(group.id);
	assert_ptr_equal(watch_of(group.id), w);
	fake_event(fake, EVENT_UNNAME, 100, group.id, "ebb");
	linger_passes(group.id);
	assert_null(watch_of(group.id));
	line = fake_last(fake, "watch.stop");
	assert_string_equal(fake_text(line, "reason"), "no_process");
}

/* An empty cgroup is not waited for. */
static void test_empty_at_once(void **state)
{
	_cleanup_json_ json_object *line = NULL;

	if (!fake)
		skip();
	fake_rules(fake, RULES);
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	fake_event(fake, EVENT_EXIT, 100, group.id, "node");
	assert_non_null(watch_of(group.id));
	fake_cgroup_event(fake, EVENT_EMPTY, group.id, group.path);
	assert_null(watch_of(group.id));
	line = fake_last(fake, "watch.stop");
	assert_string_equal(fake_text(line, "reason"), "cgroup_empty");
}

static void start_as(uint32_t tgid, uint32_t uid)
{
	struct event e = { .kind = EVENT_EXEC,
			   .tgid = tgid,
			   .uid = uid,
			   .start_ns = fake_start_ns(tgid),
			   .cgroup_id = group.id,
			   .generation = fake->a.active.set->generation,
			   .flags = EVENT_NEW_IMAGE,
			   .comm = "node" };

	fake_put(&fake->events, &e, sizeof(e));
	fake_drain_events(fake);
}

/* One user's flood of a rule's name leaves lines to the other; the left-out lines are counted. */
static void test_lines_left_out(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	json_object *left_out = NULL;

	if (!fake)
		skip();
	fake_rules(fake, RULES);
	fake->a.budget.lines.max = 16;
	for (uint32_t i = 0; i < 20; i++)
		start_as(100 + i, 1000);
	assert_int_equal(fake_count(fake, "process.match"), 8);
	assert_false(process_find(&fake->a.processes, 119, fake_start_ns(119))->announced);
	start_as(200, 0);
	assert_int_equal(fake_count(fake, "process.match"), 9);
	/* The end of one without a reported start is not reported either, but counted. */
	fake_event(fake, EVENT_EXIT, 119, group.id, "node");
	assert_int_equal(fake_count(fake, "process.exit"), 0);
	assert_int_equal(fake->a.budget.lines.left_out, 13);
	event_budget_end(&fake->a.budget);
	line = fake_last(fake, "error");
	assert_string_equal(fake_text(line, "code"), "lines_left_out");
	assert_string_equal(fake_text(line, "rule"), "api");
	assert_string_equal(fake_text(line, "count"), "13");
	assert_true(json_object_object_get_ex(line, "left_out", &left_out));
	assert_string_equal(fake_text(left_out, "process.match"), "12");
	assert_string_equal(fake_text(left_out, "process.exit"), "1");
}

/* A process with a left-out start is reported when a scan finds it in a later minute. */
static void test_announced_later(void **state)
{
	struct task_record tasks[2] = { 0 };

	if (!fake)
		skip();
	fake_rules(fake, RULES);
	fake->a.budget.lines.max = 2;
	for (uint32_t i = 0; i < 2; i++) {
		start_as(100 + i, 1000);
		tasks[i] = (struct task_record){ .tgid = 100 + i,
						 .start_ns = fake_start_ns(100 + i),
						 .cgroup_id = group.id,
						 .comm = "node" };
	}
	assert_int_equal(fake_count(fake, "process.match"), 1);
	fake_tasks(fake, tasks, 2);
	fake_scan(fake);
	assert_int_equal(fake_count(fake, "process.match"), 1);
	assert_int_equal(fake->a.budget.lines.left_out, 1);
	event_budget_end(&fake->a.budget);
	fake_scan(fake);
	assert_int_equal(fake_count(fake, "process.match"), 2);
}

static void test_learn_forget(void **state)
{
	struct cgroups *c;

	if (!fake)
		skip();
	c = &fake->a.cgroups;
	fake_cgroup_event(fake, EVENT_MKDIR, 1ULL << 40, "/told/by/event");
	assert_string_equal(cgroups_path(c, 1ULL << 40, 0), "/told/by/event");
	fake_cgroup_event(fake, EVENT_RMDIR, 1ULL << 40, "/told/by/event");
	assert_null(cgroups_path(c, 1ULL << 40, 0));
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(process_match)
{
	const struct CMUnitTest tests[] = {
		EACH(test_exec),	   EACH(test_exact),
		EACH(test_two_in_one),	   EACH(test_rename),
		EACH(test_pid_reuse),	   EACH(test_cgroup_removed),
		EACH(test_by_cgroup),	   EACH(test_scan),
		EACH(test_move),	   EACH(test_root),
		EACH(test_bad_records),	   EACH(test_rules_change),
		EACH(test_flapping),	   EACH(test_empty_at_once),
		EACH(test_lines_left_out), EACH(test_announced_later),
		EACH(test_learn_forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
