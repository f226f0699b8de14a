/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session's ledger counts: phases, the pre-roll, losses by their time, what is expected. */
#include "tests/unit/consumer/testing/session_testing.h"

/*
 * The recorder had no room for what was recorded more than two seconds ago: pre_ms is what it has,
 * the reason stands beside it, and nothing that it let go is told as a loss of the ring.
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_evicted_pre_roll),
		EACH(test_evicted_before_pre_roll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
