/* SPDX-License-Identifier: BSD-2-Clause */
/* Matched processes with a line that waits for their mappings. */
#include "tests/unit/consumer/testing/group_testing.h"

#include <unistd.h>

#include "consumer/discovery/match_queue.h"
#include "consumer/io/turn.h"
#include "shared/tools/clock.h"
#include "tests/unit/consumer/symbols/records_testing.h"

#define RULES	    "{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":\"node\"}}]}"
#define OTHER_RULES "{\"version\":1,\"rules\":[{\"name\":\"other\",\"match\":{\"comm\":\"x\"}}]}"

static int setup(void **state)
{
	turn_start(0);
	group_begin("queue");
	if (fake)
		fake_rules(fake, RULES);
	return 0;
}

/* As if this turn had spent its time on other processes. */
static void spend_turn(void)
{
	turn_start(clock_mono_ns() - TURN_NS);
}

/* A step that has time for one process. */
static void step_once(void)
{
	struct match_queue *q = &fake->a.discovery.matches;
	size_t before = q->count;

	while (q->count == before)
		match_queue_step(&fake->a.discovery);
}

static bool is_announced(uint32_t tgid)
{
	return process_find(&fake->a.processes, tgid, fake_start_ns(tgid))->announced;
}

/*
 * A storm reads no mappings beyond the time of a turn: matched and watched at once, reported later.
 */
static void test_storm(void **state)
{
	if (!fake)
		skip();
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	assert_true(is_announced(100));
	spend_turn();
	for (uint32_t tgid = 101; tgid < 104; tgid++) {
		fake_event(fake, EVENT_FORK, tgid, group.id, "node");
		assert_false(is_announced(tgid));
	}
	assert_int_equal(fake->a.watches.by_slot[0]->bindings[0].processes, 4);
	assert_int_equal(fake_count(fake, "process.match"), 1);
	assert_int_equal(fake->a.discovery.matches.count, 3);
	/* The loop comes back soon. */
	assert_in_range(fake->a.schedule.drain_due_ns, 1, clock_mono_ns() + NSEC_PER_SEC);
	for (int i = 0; i < 100 && fake->a.discovery.matches.count; i++)
		match_queue_step(&fake->a.discovery);
	assert_int_equal(fake_count(fake, "process.match"), 4);
	assert_true(is_announced(101) && is_announced(103));
	assert_null(fake->a.discovery.matches.first);
	assert_null(fake->a.discovery.matches.last);
}

/*
 * A process that ends while it waits is reported with the reason of its missing program, and then
 * its exit.
 */
static void test_gone(void **state)
{
	_cleanup_json_ json_object *lines = NULL, *line = NULL;
	size_t n;

	if (!fake)
		skip();
	spend_turn();
	for (uint32_t tgid = 100; tgid < 103; tgid++)
		fake_event(fake, EVENT_FORK, tgid, group.id, "node");
	fake_event(fake, EVENT_EXIT, 101, group.id, "node");
	assert_int_equal(fake->a.discovery.matches.count, 2);
	lines = fake_lines(fake);
	n = json_object_array_length(lines);
	line = json_object_get(json_object_array_get_idx(lines, n - 2));
	assert_string_equal(fake_text(line, "type"), "process.match");
	assert_string_equal(fake_text(line, "pid"), "101");
	assert_null(fake_text(line, "exe"));
	assert_string_equal(fake_text(line, "exe_reason"),
			    "the process had gone before its mappings were read");
	assert_string_equal(fake_text(json_object_array_get_idx(lines, n - 1), "type"),
			    "process.exit");
	fake_event(fake, EVENT_EXIT, 102, group.id, "node");
	fake_event(fake, EVENT_EXIT, 100, group.id, "node");
	assert_null(fake->a.discovery.matches.first);
	assert_null(fake->a.discovery.matches.last);
	assert_int_equal(fake_count(fake, "process.match"), 3);
	assert_int_equal(fake_count(fake, "process.exit"), 3);
}

/* A fork and the exec that follows while it waits are one line. */
static void test_once(void **state)
{
	_cleanup_json_ json_object *line = NULL;

	if (!fake)
		skip();
	spend_turn();
	fake_event(fake, EVENT_FORK, 100, group.id, "node");
	fake_event(fake, EVENT_EXEC, 100, group.id, "node");
	assert_int_equal(fake->a.discovery.matches.count, 1);
	step_once();
	assert_int_equal(fake_count(fake, "process.match"), 1);
	line = fake_last(fake, "process.match");
	assert_string_equal(fake_text(line, "found"), "exec");
}

/* Who loses its rule while it waits matches nothing. */
static void test_rule_gone(void **state)
{
	if (!fake)
		skip();
	spend_turn();
	fake_event(fake, EVENT_FORK, 100, group.id, "node");
	fake_rules(fake, OTHER_RULES);
	for (int i = 0; i < 100 && fake->a.discovery.matches.count; i++)
		match_queue_step(&fake->a.discovery);
	assert_int_equal(fake_count(fake, "process.match"), 0);
}

/* A start of more processes than a turn has time for: the rest waits, none is lost. */
static void test_scan(void **state)
{
	struct task_record tasks[20] = { 0 };

	if (!fake)
		skip();
	for (uint32_t i = 0; i < ARRAY_SIZE(tasks); i++)
		tasks[i] = (struct task_record){ .tgid = 100 + i,
						 .start_ns = fake_start_ns(100 + i),
						 .cgroup_id = group.id,
						 .comm = "node" };
	fake_tasks(fake, tasks, ARRAY_SIZE(tasks));
	spend_turn();
	fake_rules(fake, RULES);
	assert_int_equal(fake->a.discovery.matches.count, ARRAY_SIZE(tasks));
	assert_int_equal(fake_count(fake, "rules.applied"), 3);
	assert_int_equal(fake_count(fake, "process.match"), 0);
	for (int i = 0; i < 1000 && fake->a.discovery.matches.count; i++)
		match_queue_step(&fake->a.discovery);
	assert_int_equal(fake_count(fake, "process.match"), ARRAY_SIZE(tasks));
}

/*
 * A table full of living processes: a process without room is counted, and a scan is due that finds
 * it when there is room.
 */
static void test_no_room(void **state)
{
	struct task_record task = {
		.tgid = 500, .start_ns = fake_start_ns(500), .cgroup_id = group.id, .comm = "node"
	};

	if (!fake)
		skip();
	for (uint32_t i = 0; i < FAKE_PROCESSES; i++)
		fake_event(fake, EVENT_FORK, 100 + i, group.id, "node");
	assert_int_equal(fake->a.counts.matches_full, 0);
	fake_event(fake, EVENT_EXEC, 500, group.id, "node");
	assert_int_equal(fake->a.counts.matches_full, 1);
	assert_in_range(fake->a.schedule.scan_due_ns, 1, clock_mono_ns() + SCHEDULE_SCAN_NS);
	fake_event(fake, EVENT_EXIT, 100, group.id, "node");
	fake_tasks(fake, &task, 1);
	fake_scan(fake);
	assert_non_null(process_find(&fake->a.processes, 500, fake_start_ns(500)));
}

/* One mapping of each of these processes, as the walk lists them. */
static void list_mappings(uint32_t first, uint32_t count)
{
	FILE *file = fopen(fake->vmas, "we");

	assert_non_null(file);
	for (uint32_t tgid = first; tgid < first + count; tgid++)
		records_file_mapping(file,
				     (struct mapping_record){ .start_ns = fake_start_ns(tgid),
							      .tgid = tgid,
							      .start = 0x10000,
							      .end = 0x20000,
							      .inode = 7,
							      .flags = MAPPING_IS_EXE },
				     "/srv/node");
	fclose(file);
}

/*
 * Where the kernel has to be walked: all matched ones wait for the one walk, with any time of the
 * turn, and their lines have its result; also for one that is reported again.
 */
static void test_walk(void **state)
{
	_cleanup_json_ json_object *line = NULL;

	if (!fake)
		skip();
	fake->a.pins.abi.vma_open_coded = 0;
	list_mappings(100, 4);
	for (uint32_t tgid = 100; tgid < 104; tgid++)
		fake_event(fake, EVENT_FORK, tgid, group.id, "node");
	assert_int_equal(fake->a.discovery.matches.count, 4);
	assert_int_equal(fake_count(fake, "process.match"), 0);
	fake_event(fake, EVENT_EXIT, 102, group.id, "node");
	assert_int_equal(fake_count(fake, "process.match"), 1);
	for (int i = 0; i < 100 && (fake->a.discovery.matches.count ||
				    mappings_queue_has_rest(&fake->a.queue));
	     i++)
		match_queue_step(&fake->a.discovery);
	assert_int_equal(fake_count(fake, "process.match"), 4);
	assert_int_equal(fake->a.queue.walk.walks, 1);
	line = fake_last(fake, "process.match");
	assert_string_equal(fake_text(line, "exe"), "/srv/node");
	assert_false(mappings_queue_has_rest(&fake->a.queue));
	/* Known programs are reported at once, though the turn is over. */
	spend_turn();
	fake_rules(fake, OTHER_RULES);
	fake_rules(fake, RULES);
	fake_event(fake, EVENT_RENAME, 101, group.id, "node");
	assert_int_equal(fake->a.discovery.matches.count, 0);
}

/* While a scan finds more of them they wait for one walk, but not for long. */
static void test_walk_after_scan(void **state)
{
	struct discovery *d = fake ? &fake->a.discovery : NULL;

	if (!fake)
		skip();
	fake->a.pins.abi.vma_open_coded = 0;
	list_mappings(100, 2);
	d->scan.stage = SCAN_TASKS;
	for (uint32_t tgid = 100; tgid < 102; tgid++) {
		fake_event(fake, EVENT_FORK, tgid, group.id, "node");
		match_queue_step(d);
	}
	assert_int_equal(d->queue->walk.walks, 0);
	assert_int_equal(fake_count(fake, "process.match"), 0);
	d->scan.stage = SCAN_NONE;
	for (int i = 0; i < 100 && d->matches.count; i++)
		match_queue_step(d);
	assert_int_equal(fake_count(fake, "process.match"), 2);
	assert_int_equal(d->queue->walk.walks, 1);
	assert_int_equal(d->matches.held_ns, 0);

	list_mappings(102, 1);
	d->scan.stage = SCAN_TASKS;
	fake_event(fake, EVENT_FORK, 102, group.id, "node");
	match_queue_step(d);
	assert_int_equal(fake_count(fake, "process.match"), 2);
	d->matches.held_ns -= NSEC_PER_SEC;
	for (int i = 0; i < 100 && d->matches.count; i++)
		match_queue_step(d);
	assert_int_equal(fake_count(fake, "process.match"), 3);
	d->scan.stage = SCAN_NONE;
}

/* A living process that no walk lists is reported, with the reason of its missing program. */
static void test_walk_in_vain(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	uint32_t here = (uint32_t)getpid();

	if (!fake)
		skip();
	fake->a.pins.abi.vma_open_coded = 0;
	fake_event(fake, EVENT_FORK, here, group.id, "node");
	for (int i = 0; i < 100 && fake->a.discovery.matches.count; i++)
		match_queue_step(&fake->a.discovery);
	assert_int_equal(fake->a.queue.walk.walks, MAPPINGS_QUEUE_WALKS);
	line = fake_last(fake, "process.match");
	assert_null(fake_text(line, "exe"));
	assert_string_equal(fake_text(line, "exe_reason"),
			    "its mappings could not be read: they changed in the meantime");
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(match_queue)
{
	const struct CMUnitTest tests[] = {
		EACH(test_storm),	 EACH(test_gone),
		EACH(test_once),	 EACH(test_rule_gone),
		EACH(test_scan),	 EACH(test_no_room),
		EACH(test_walk),	 EACH(test_walk_after_scan),
		EACH(test_walk_in_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
