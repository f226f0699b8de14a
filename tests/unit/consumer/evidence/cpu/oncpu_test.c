/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session's ledger counts: phases, the pre-roll, losses by their time, expected samples. */
#include "tests/unit/consumer/testing/session_testing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The recorder had no room for samples older than two seconds: pre_ms is the recorded time, with
 * its reason, and no dropped sample is reported as a loss of the ring.
 */
static void test_evicted_pre_roll(void **state)
{
	int64_t cpus = fake ? fake->a.pins.abi.cpus_possible : 0;
	_cleanup_json_ json_object *start_line = NULL, *line = NULL;
	struct session *s;
	json_object *l;

	if (!fake)
		skip();
	put(7, 0, 100, watch->epoch);
	fake_drain_samples(fake);
	fake->a.recorder.evicted = 20;
	fake->a.recorder.evicted_ns = clock_mono_ns() - 2 * NSEC_PER_SEC;
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 8, .emitted = 8 });
	s = start(TRIGGER_EXEC);
	assert_in_range(s->target.pre_ms, 2000, 4000);
	end(s);
	start_line = fake_last(fake, "session.start");
	assert_non_null(strstr(fake_text(start_line, "pre_ms_reason"), "--recorder-kib"));
	line = fake_last(fake, "session.end");
	l = ledger_of(line);
	assert_int_equal(number(line, "pre_ms"), number(start_line, "pre_ms"));
	assert_non_null(strstr(fake_text(line, "pre_ms_reason"), "--recorder-kib"));
	assert_int_equal(number(l, "attempted"), cpus);
	assert_int_equal(number(l, "emitted"), cpus);
	assert_string_equal(fake_text(line, "verdict"), "partial");
	assert_non_null(strstr(fake_text(line, "verdict_reason"), "--recorder-kib"));
}

/*
 * What was sampled while the stall was measured is the onset; only older samples are calm. Nothing
 * of it is counted twice or not at all.
 */
static void test_onset(void **state)
{
	int64_t cpus = fake ? fake->a.pins.abi.cpus_possible : 0;
	_cleanup_json_ json_object *start_line = NULL, *line = NULL;
	struct trigger trigger = cpu_trigger();
	struct trigger_held held;
	struct session *s;
	json_object *l;

	if (!fake)
		skip();
	trigger.reason.measured_ms = 3000;
	for (uint32_t seq = 0; seq < 8; seq++)
		put_ago(seq, (8 - seq) * NSEC_PER_SEC + NSEC_PER_SEC / 2);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 8, .emitted = 8 });
	fake_drain_samples(fake);
	assert_int_equal(trigger_fire(&fake->a.triggers, &trigger, &s, &held), 0);
	put(8, SAMPLE_CAPTURE, 100, watch->epoch);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 9, .emitted = 9 });
	end(s);
	start_line = fake_last(fake, "session.start");
	assert_int_equal(number(start_line, "pre_ms"), 10000);
	assert_int_equal(number(start_line, "onset_ms"), 3000);
	line = fake_last(fake, "session.end");
	assert_int_equal(number(line, "onset_ms"), 3000);
	l = ledger_of(line);
	assert_int_equal(number(json_object_object_get(l, "before"), "emitted"), 6 * cpus);
	assert_int_equal(number(json_object_object_get(l, "onset"), "emitted"), 2 * cpus);
	assert_int_equal(number(json_object_object_get(l, "during"), "emitted"), cpus);
	assert_int_equal(number(l, "attempted"), 9 * cpus);
	assert_int_equal(fake_count(fake, "stack"), 3);
}

/* Samples lost in the onset are lost there, also when the whole of it is. */
static void test_onset_lost(void **state)
{
	int64_t cpus = fake ? fake->a.pins.abi.cpus_possible : 0;
	_cleanup_json_ json_object *line = NULL;
	struct trigger trigger = cpu_trigger();
	struct trigger_held held;
	struct session *s;
	json_object *l;

	if (!fake)
		skip();
	trigger.reason.measured_ms = 3000;
	put_ago(0, 6 * NSEC_PER_SEC);
	put_ago(1, 5 * NSEC_PER_SEC);
	watch->counters = (struct counter_history){};
	had_counted(12 * NSEC_PER_SEC, (struct slot_counters){});
	had_counted(2 * NSEC_PER_SEC, (struct slot_counters){ .attempted = 2, .emitted = 2 });
	fake_counters(fake, watch->slot,
		      (struct slot_counters){
			      .attempted = 5, .emitted = 2, .lost = { [DROP_RING_FULL] = 3 } });
	fake_drain_samples(fake);
	assert_int_equal(trigger_fire(&fake->a.triggers, &trigger, &s, &held), 0);
	end(s);
	line = fake_last(fake, "session.end");
	l = ledger_of(line);
	assert_int_equal(number(json_object_object_get(l, "before"), "attempted"), 2 * cpus);
	assert_int_equal(number(json_object_object_get(l, "onset"), "attempted"), 3 * cpus);
	assert_int_equal(number(json_object_object_get(l, "onset"), "emitted"), 0);
	assert_int_equal(number(json_object_object_get(l, "lost"), "ring_full"), 3 * cpus);
}

/*
 * The slot's counters still hold ticks that went stale long before the pre-roll, and some around
 * its beginning: samples without room in the ring are reported as that.
 */
static void test_loss_before_trigger(void **state)
{
	int64_t cpus = fake ? fake->a.pins.abi.cpus_possible : 0;
	const struct slot_counters then = { .attempted = 1197, .lost = { [DROP_STALE] = 1197 } };
	_cleanup_json_ json_object *line = NULL;
	json_object *lost;

	if (!fake)
		skip();
	watch->counters = (struct counter_history){};
	had_counted(20 * NSEC_PER_SEC, then);
	had_counted(rule->pre_ms * NSEC_PER_MSEC + NSEC_PER_SEC, then);
	had_counted(3 * NSEC_PER_SEC,
		    (struct slot_counters){ .attempted = 1200, .lost = { [DROP_STALE] = 1200 } });
	put(1200, 0, 100, watch->epoch);
	fake_counters(
		fake, watch->slot,
		(struct slot_counters){ .attempted = 1207,
					.emitted = 1,
					.lost = { [DROP_STALE] = 1200, [DROP_RING_FULL] = 6 } });
	end(start(TRIGGER_EXEC));
	line = fake_last(fake, "session.end");
	lost = json_object_object_get(ledger_of(line), "lost");
	assert_int_equal(number(lost, "stale"), 0);
	assert_int_equal(number(lost, "ring_full"), 6 * cpus);
	assert_int_equal(number(ledger_of(line), "attempted"), 7 * cpus);
}

/* Nothing of the pre-roll arrived: a reading of the counters in it has the number. */
static void test_all_lost_before_trigger(void **state)
{
	int64_t cpus = fake ? fake->a.pins.abi.cpus_possible : 0;
	_cleanup_json_ json_object *line = NULL;
	json_object *l;

	if (!fake)
		skip();
	watch->counters = (struct counter_history){};
	had_counted(rule->pre_ms * NSEC_PER_MSEC + NSEC_PER_SEC, (struct slot_counters){});
	had_counted(NSEC_PER_SEC, (struct slot_counters){ .attempted = 5, .emitted = 5 });
	fake_counters(fake, watch->slot,
		      (struct slot_counters){
			      .attempted = 9, .emitted = 5, .lost = { [DROP_RING_FULL] = 4 } });
	end(start(TRIGGER_EXEC));
	line = fake_last(fake, "session.end");
	l = ledger_of(line);
	assert_int_equal(number(l, "attempted"), 4 * cpus);
	assert_int_equal(number(l, "emitted"), 0);
	assert_int_equal(number(json_object_object_get(l, "lost"), "ring_full"), 4 * cpus);
	assert_string_equal(fake_text(line, "verdict"), "inconclusive");
}

/* The drain reads each watch's counters, not more often than every few seconds. */
static void test_counters_noted(void **state)
{
	if (!fake)
		skip();
	assert_int_equal(watch->counters.count, 1);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 3 });
	watches_note_counters(&fake->a.watches);
	watches_note_counters(&fake->a.watches);
	assert_int_equal(watch->counters.count, 2);
	assert_int_equal(watch->counters.points[watch->counters.newest].sum.attempted,
			 3 * fake->a.pins.abi.cpus_possible);
}

/* An eviction from before the pre-roll takes nothing from it, and is no excuse for a lost sample.
 */
static void test_evicted_before_pre_roll(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct session *s;

	if (!fake)
		skip();
	put(0, 0, 100, watch->epoch);
	fake_drain_samples(fake);
	fake->a.recorder.evicted = 20;
	fake->a.recorder.evicted_ns = clock_mono_ns() - rule->pre_ms * NSEC_PER_MSEC - NSEC_PER_SEC;
	fake_counters(fake, watch->slot,
		      (struct slot_counters){
			      .attempted = 3, .emitted = 1, .lost = { [DROP_RING_FULL] = 2 } });
	s = start(TRIGGER_EXEC);
	assert_int_equal(s->target.pre_ms, rule->pre_ms);
	end(s);
	line = fake_last(fake, "session.end");
	assert_false(json_object_object_get_ex(line, "pre_ms_reason", NULL));
	assert_int_equal(number(json_object_object_get(ledger_of(line), "lost"), "held"), 0);
}

/* Why it is not known how many samples to expect: it is not counted, or its file cannot be read. */
static void test_expected_reason(void **state)
{
	_cleanup_json_ json_object *gone = NULL, *choice = NULL;

	if (!fake)
		skip();
	end(start(TRIGGER_EXEC));
	gone = fake_last(fake, "session.end");
	assert_non_null(strstr(fake_text(ledger_of(gone), "expected_reason"), "cpu.stat"));
	watch_remove(watch, "rule_gone");
	use_rules("", "process");
	end(start(TRIGGER_REQUEST)); /* the rule is in its cooldown */
	choice = fake_last(fake, "session.end");
	assert_non_null(strstr(fake_text(ledger_of(choice), "expected_reason"), "not counted"));
}

static void put_usage(const char *text)
{
	int fd = openat(fake->a.cgroups.mount_fd, "unit/session/cpu.stat",
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* A restarted service has a new cgroup of the old name, with a CPU time that begins at 0. */
static void test_expected_of_a_restart(void **state)
{
	_cleanup_json_ json_object *grown = NULL, *anew = NULL;
	char folder[] = "/tmp/oncpu_test.XXXXXX";
	struct session *s;
	int mount_fd;

	if (!fake)
		skip();
	mount_fd = fake->a.cgroups.mount_fd;
	assert_non_null(mkdtemp(folder));
	fake->a.cgroups.mount_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(fake->a.cgroups.mount_fd, "unit", 0700), 0);
	assert_int_equal(mkdirat(fake->a.cgroups.mount_fd, "unit/session", 0700), 0);
	put_usage("usage_usec 7000000\n");
	s = start(TRIGGER_EXEC);
	put_usage("usage_usec 9000000\n");
	end(s);
	grown = fake_last(fake, "session.end");
	assert_int_equal(number(ledger_of(grown), "expected"), 2 * (int64_t)fake->a.pins.abi.hz);
	s = start(TRIGGER_REQUEST); /* the rule is in its cooldown */
	put_usage("usage_usec 40\n");
	end(s);
	anew = fake_last(fake, "session.end");
	assert_null(json_object_object_get(ledger_of(anew), "expected"));
	assert_non_null(strstr(fake_text(ledger_of(anew), "expected_reason"), "begins at 0"));
	assert_int_equal(unlinkat(fake->a.cgroups.mount_fd, "unit/session/cpu.stat", 0), 0);
	assert_int_equal(unlinkat(fake->a.cgroups.mount_fd, "unit/session", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(fake->a.cgroups.mount_fd, "unit", AT_REMOVEDIR), 0);
	close(fake->a.cgroups.mount_fd);
	fake->a.cgroups.mount_fd = mount_fd;
	assert_int_equal(rmdir(folder), 0);
}

/* The stacks of all sessions take from one budget, and give back when they are written. */
static void test_stack_budget(void **state)
{
	if (!fake)
		skip();
	fake->a.sessions.stacks.max_bytes = 1;
	start(TRIGGER_EXEC);
	put(0, SAMPLE_CAPTURE, 100, watch->epoch);
	fake_drain_samples(fake);
	assert_int_equal(fake->a.sessions.stacks.used_bytes, 0);
	fake->a.sessions.stacks.max_bytes = STACK_BUDGET_BYTES;
	put(1, SAMPLE_CAPTURE, 100, watch->epoch);
	fake_drain_samples(fake);
	assert_true(fake->a.sessions.stacks.used_bytes > 0);
	fake_counters(fake, watch->slot, (struct slot_counters){ .attempted = 2, .emitted = 2 });
	end(watch->session);
	assert_int_equal(fake_count(fake, "stack"), 1);
	for (int i = 0; i < 5000 && fake->a.sessions.stacks.used_bytes; i++)
		usleep(1000);
	assert_int_equal(fake->a.sessions.stacks.used_bytes, 0);
}

UNIT_TESTS(oncpu)
{
	const struct CMUnitTest tests[] = {
		EACH(test_onset),
		EACH(test_onset_lost),
		EACH(test_loss_before_trigger),
		EACH(test_all_lost_before_trigger),
		EACH(test_counters_noted),
		EACH(test_evicted_pre_roll),
		EACH(test_evicted_before_pre_roll),
		EACH(test_expected_reason),
		EACH(test_expected_of_a_restart),
		EACH(test_stack_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
