/* SPDX-License-Identifier: BSD-2-Clause */
/* Which samples of its slot a session with scope process takes. */
#include "tests/unit/consumer/testing/session_testing.h"

/* The same of a process that the kernel side has matched with the first rule of that set. */
static void put_matched(uint32_t seq, uint32_t flags, uint32_t tgid, uint32_t generation)
{
	put_sample((struct sample){ .epoch = watch->epoch,
				    .seq = seq,
				    .tgid = tgid,
				    .tid = tgid + 1,
				    .flags = flags | SAMPLE_MATCHED,
				    .generation = generation,
				    .comm = "thread" });
}

/* The number at `key` of the ledger of the last session, per CPU. */
static int64_t counted(const char *phase, const char *key)
{
	_cleanup_json_ json_object *line = fake_last(fake, "session.end");
	json_object *l = ledger_of(line);
	int64_t cpus = fake->a.pins.abi.cpus_possible;

	assert_int_equal(number(l, "attempted"),
			 number(l, "emitted") + number(json_object_object_get(l, "lost"), "stale"));
	if (phase)
		l = json_object_object_get(l, phase);
	assert_int_equal(number(l, key) % cpus, 0);
	return number(l, key) / cpus;
}

/* scope: process: a neighbour's samples are neither evidence nor a loss. */
static void test_scope(void **state)
{
	int64_t cpus = fake ? fake->a.pins.abi.cpus_possible : 0;
	_cleanup_json_ json_object *line = NULL;
	struct process *p;
	struct session *s;

	if (!fake)
		skip();
	watch_remove(watch, "rule_gone");
	use_rules("", "process");
	assert_int_equal(process_get(&fake->a.processes, 100, 5, &p), 0);
	p->rule = rule;
	s = start(TRIGGER_EXEC);
	for (uint32_t seq = 0; seq < 6; seq++)
		put(seq, SAMPLE_CAPTURE, seq % 2 ? 100 : 200, watch->epoch);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 6, .emitted = 6 });
	end(s);
	line = fake_last(fake, "session.end");
	assert_int_equal(number(ledger_of(line), "attempted"), 3 * cpus);
	assert_int_equal(number(ledger_of(line), "emitted"), 3 * cpus);
}

/*
 * Processes of which the consumer has not heard yet, because the event of their start is still in
 * its ring: what the kernel side knew at the tick decides, before the trigger and after it.
 */
static void test_scope_takes_newborns(void **state)
{
	uint32_t generation;
	struct session *s;

	if (!fake)
		skip();
	watch_remove(watch, "rule_gone");
	use_rules("", "process");
	generation = fake->a.active.set->generation;
	put_matched(0, 0, 100, generation);
	put(1, 0, 200, watch->epoch);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 2, .emitted = 2 });
	s = start(TRIGGER_EXEC);
	for (uint32_t seq = 2; seq < 8; seq++) {
		if (seq % 2)
			put(seq, SAMPLE_CAPTURE, 300 + seq, watch->epoch);
		else
			put_matched(seq, SAMPLE_CAPTURE, 300 + seq, generation);
	}
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 8, .emitted = 8 });
	end(s);
	assert_int_equal(counted("before", "emitted"), 1);
	assert_int_equal(counted("during", "emitted"), 3);
	assert_int_equal(counted(NULL, "attempted"), 4);
}

/* So it is when the table of processes has no room for them. */
static void test_scope_in_a_full_table(void **state)
{
	struct process *p;
	struct session *s;

	if (!fake)
		skip();
	watch_remove(watch, "rule_gone");
	use_rules("", "process");
	for (uint32_t i = 0; i < FAKE_PROCESSES; i++)
		assert_int_equal(process_get(&fake->a.processes, 1000 + i, 5, &p), 0);
	s = start(TRIGGER_EXEC);
	put_matched(0, SAMPLE_CAPTURE, 100, fake->a.active.set->generation);
	put(1, SAMPLE_CAPTURE, 200, watch->epoch);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 2, .emitted = 2 });
	end(s);
	assert_true(fake->a.counts.processes_full > 0);
	assert_int_equal(counted("during", "emitted"), 1);
	assert_int_equal(counted("during", "attempted"), 1);
}

/* A sample without a known rule is a loss. */
static void test_scope_names_unknown_counts(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct session *s;

	if (!fake)
		skip();
	watch_remove(watch, "rule_gone");
	use_rules("", "process");
	s = start(TRIGGER_EXEC);
	put_matched(0, SAMPLE_CAPTURE, 100, fake->a.active.set->generation);
	put_matched(1, SAMPLE_CAPTURE, 100, fake->a.active.set->generation - 1);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 2, .emitted = 2 });
	s->end_ns = s->target.start_ns;
	step(s->end_ns);
	/* It is waited for no longer than for any other. */
	assert_null(watch->session);
	assert_int_equal(counted("during", "attempted"), 2);
	assert_int_equal(counted("during", "emitted"), 1);
	line = fake_last(fake, "session.end");
	assert_string_equal(fake_text(line, "verdict"), "partial");
}

/* The same set pushed again changes no pointer that a session could compare. */
static void test_scope_outlives_a_push(void **state)
{
	struct task_record task = {
		.tgid = 100, .start_ns = 5, .cgroup_id = 1ULL << 40, .comm = "node"
	};
	struct session *s;

	if (!fake)
		skip();
	watch_remove(watch, "rule_gone");
	fake_tasks(fake, &task, 1);
	use_rules("", "process");
	s = start(TRIGGER_EXEC);
	put(0, SAMPLE_CAPTURE, 100, watch->epoch);
	fake_drain_samples(fake);
	apply_rules("", "process");
	put(1, SAMPLE_CAPTURE, 100, watch->epoch);
	put_matched(2, SAMPLE_CAPTURE, 101, fake->a.active.set->generation);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 3, .emitted = 3 });
	end(s);
	assert_int_equal(counted("during", "emitted"), 3);
}

UNIT_TESTS(session_scope)
{
	const struct CMUnitTest tests[] = {
		EACH(test_scope),
		EACH(test_scope_takes_newborns),
		EACH(test_scope_in_a_full_table),
		EACH(test_scope_names_unknown_counts),
		EACH(test_scope_outlives_a_push),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
