/* SPDX-License-Identifier: BSD-2-Clause */
/* The last line's verdict on the capture, by the signals that ran and those that did not. */
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/time/queue_waits.h"
#include "consumer/evidence/waits/look_coverage.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/sampling/wait_kind.h"
#include "tests/unit/consumer/testing/report_testing.h"

/*
 * No sampler at all: the verdict, its reason and the headline report it, and never that nothing
 * ran.
 */
static void test_unsampled(void **state)
{
	struct session_result *s = report_testing_new_session("/api");
	json_object *end;

	s->signals[SIGNAL_ONCPU]->off_reason = "no broker answers";
	end = report_testing_end_of(s);
	assert_string_equal(get(end, "verdict"), "inconclusive");
	assert_string_equal(get(end, "verdict_reason"), "no broker answers");
	assert_non_null(strstr(get(end, "headline"), "no CPU was sampled: no broker answers"));
	assert_false(json_object_object_get_ex(end, "switches", NULL));
	json_object_put(end);
}

static void test_partly_sampled(void **state)
{
	struct session_result *s = report_testing_new_session("/api");
	json_object *end;

	s->signals[SIGNAL_ONCPU]->partial_reason = "one refused";
	end = report_testing_end_of(s);
	assert_string_equal(get(end, "verdict"), "partial");
	assert_string_equal(get(end, "verdict_reason"), "one refused");
	json_object_put(end);
}

/*
 * A signal that auto adds and that is not attached: it has the reason, and the verdict does not
 * depend on it.
 */
static void test_missing_signal(void **state)
{
	const struct signal_host on = { .kinds = evidence_kinds };
	const struct signal_target target = {};
	struct session_result *s = report_testing_new_session("/api");
	json_object *end, *switches;

	s->signals[SIGNAL_SWITCH] = signals_new(SIGNAL_SWITCH, &on, &target);
	assert_non_null(s->signals[SIGNAL_SWITCH]);
	s->signals[SIGNAL_SWITCH]->off_reason = "no broker attaches";
	end = report_testing_end_of(s);
	assert_true(json_object_object_get_ex(end, "switches", &switches));
	assert_null(switches);
	assert_string_equal(get(end, "switches_reason"), "no broker attaches");
	assert_string_equal(get(end, "verdict"), "complete");
	json_object_put(end);
}

/* The same where the rule names it: the question is open. */
static void test_missing_named_signal(void **state)
{
	struct rule rule = { .name = "api", .signals = 1u << SIGNAL_BLOCK };
	struct ruleset set = { .refs = 2, .generation = 1 };
	const struct signal_host on = { .kinds = evidence_kinds };
	const struct signal_target target = {};
	struct session_result *s = report_testing_new_session("/api");
	json_object *end;

	s->set = &set;
	s->rule = &rule;
	s->signals[SIGNAL_BLOCK] = signals_new(SIGNAL_BLOCK, &on, &target);
	assert_non_null(s->signals[SIGNAL_BLOCK]);
	end = report_testing_end_of(s);
	assert_string_equal(get(end, "verdict"), "inconclusive");
	assert_non_null(strstr(get(end, "verdict_reason"), "signals that did not run"));
	json_object_put(end);
}

/* Most stacks lack their callers: the shares of the leaves hold, and the verdict is not complete.
 */
static void test_mostly_broken(void **state)
{
	struct session_result *s = report_testing_new_session("/api");
	json_object *end;

	report_testing_add(s, PHASE_DURING, 3, 2, 0, 10);
	report_testing_add(s, PHASE_DURING, 9, 0, 2, 30);
	end = report_testing_end_of(s);
	assert_int_equal(number(json_object_object_get(end, "stack_quality"), "broken"), 40);
	assert_string_equal(get(end, "verdict"), "partial");
	assert_non_null(strstr(get(end, "verdict_reason"), "40 of 40 samples"));
	json_object_put(end);
}

/* Adds the signal of threads that wait, with `count` looks at one stack that lacks its callers. */
static void add_hung(struct session_result *s, unsigned int count)
{
	static const struct pinned_maps pins = { .abi = { .cpus_possible = 1, .hz = 100 } };
	static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
	static const struct signal_target target;
	struct signal *offcpu = signals_new(SIGNAL_OFFCPU, &host, &target);
	struct stack_sample *h = calloc(1, sizeof(*h) + 2 * sizeof(h->frames[0]));

	assert_true(offcpu && offcpu->taken && h);
	h->tgid = h->tid = 7;
	h->user_frames = 2;
	h->wait = WAIT_BLOCKED;
	for (int i = 0; i < 2; i++)
		h->frames[i] = (struct frame){ &stack_sample_unknown, 0x1000 };
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(stack_table_add(&offcpu->taken->stacks, h, PHASE_DURING,
						 50 * NSEC_PER_MSEC, NULL),
				 0);
	offcpu->taken->phase[PHASE_DURING].emitted = count;
	offcpu->taken->phase[PHASE_DURING].attempted = count;
	s->signals[SIGNAL_OFFCPU] = offcpu;
	free(h);
}

/* A service that hangs: what waits lacks its callers, though the little that ran has them. */
static void test_waits_broken(void **state)
{
	struct session_result *s = report_testing_new_session("/api");
	json_object *end, *quality, *waits;

	add_hung(s, 4);
	report_testing_add(s, PHASE_DURING, 5, 2, 0, 60);
	report_testing_taken_by(s)->stacks.items[0]->flags |= SAMPLE_KTHREAD;
	end = report_testing_end_of(s);
	quality = json_object_object_get(end, "stack_quality");
	assert_int_equal(number(quality, "broken"), 4);
	assert_int_equal(number(quality, "complete"), 60);
	waits = json_object_object_get(json_object_object_get(quality, "by_signal"), "offcpu");
	assert_int_equal(number(waits, "broken"), 4);
	assert_int_equal(number(waits, "complete"), 0);
	assert_string_equal(get(end, "verdict"), "partial");
	assert_non_null(strstr(get(end, "verdict_reason"), "4 of 4 samples of the signal offcpu"));
	json_object_put(end);
}

/* One look at a program that ran nearly all the time proves nothing about the session. */
static void test_one_wait_broken(void **state)
{
	struct session_result *s = report_testing_new_session("/api");
	json_object *end;

	add_hung(s, 1);
	report_testing_add(s, PHASE_DURING, 5, 2, 0, 60);
	report_testing_taken_by(s)->stacks.items[0]->flags |= SAMPLE_KTHREAD;
	end = report_testing_end_of(s);
	assert_int_equal(number(json_object_object_get(end, "stack_quality"), "broken"), 1);
	assert_string_equal(get(end, "verdict"), "complete");
	json_object_put(end);
}

/* A third of the expected samples never came, and nothing was lost. */
static void test_silent_gap(void **state)
{
	struct session_result *s = report_testing_new_session("/api");
	json_object *end;

	report_testing_add(s, PHASE_DURING, 3, 2, 0, 309);
	report_testing_taken_by(s)->expected = 484;
	end = report_testing_end_of(s);
	assert_string_equal(get(end, "verdict"), "partial");
	assert_non_null(strstr(get(end, "verdict_reason"), "309 ticks"));
	assert_non_null(strstr(get(end, "verdict_reason"), "484"));
	json_object_put(end);
}

/* More ticks than the CPU time calls for: nothing is missing, and the times are too long. */
static void test_too_many_ticks(void **state)
{
	struct session_result *s = report_testing_new_session("/api");
	json_object *end;

	report_testing_add(s, PHASE_DURING, 3, 2, 0, 300);
	report_testing_taken_by(s)->stacks.items[0]->flags |= SAMPLE_KTHREAD;
	report_testing_taken_by(s)->expected = 240;
	end = report_testing_end_of(s);
	assert_string_equal(get(end, "verdict"), "complete");
	assert_non_null(strstr(get(end, "verdict_reason"), "300 ticks"));
	assert_non_null(strstr(get(end, "verdict_reason"), "240"));
	json_object_put(end);
}

/*
 * A session of a cgroup that stalled on io for 4.5 s: 0.5 s when it began, the rest until its end.
 */
static struct session_result *new_io_session(void)
{
	struct session_result *s = report_testing_new_session("/db");

	s->reason = (struct trigger_reason){
		.kind = TRIGGER_PRESSURE,
		.when = { .resource = RESOURCE_IO, .stall_ms = 300, .window_ms = 1000 },
		.by = "scan",
		.stall_ms = 500,
		.measured_ms = 1000,
		.now = { .some.total_us = 1000000 },
	};
	s->pressure_end = (struct psi){ .some.total_us = 5000000 };
	s->has_pressure_end = true;
	s->pre_ms = 3000;
	s->onset_ms = 1000;
	return s;
}

/* Counts samples of whole stacks of 10 ms each. */
static void add_whole(struct session_result *s, enum phase phase, unsigned int first,
		      unsigned int count)
{
	struct stack_table *stacks = &report_testing_taken_by(s)->stacks;

	report_testing_add(s, phase, first, 2, 0, count);
	stacks->items[stacks->count - 1]->flags |= SAMPLE_KTHREAD;
}

/* Counts looks at threads that waited for a CPU, 10 ms each. */
static void add_queued(struct session_result *s, enum phase phase, unsigned int first,
		       unsigned int count)
{
	struct stack_table *stacks = &report_testing_taken_by(s)->stacks;

	add_whole(s, phase, first, count);
	stacks->items[stacks->count - 1]->wait = WAIT_FOR_CPU;
}

/* 0.15 s on CPU do not explain 4.5 s of waiting, although nothing of them is lost. */
static void test_io_waited(void **state)
{
	struct session_result *s = new_io_session();
	json_object *end;

	add_whole(s, PHASE_BEFORE, 1, 200);
	add_whole(s, PHASE_ONSET, 3, 5);
	add_whole(s, PHASE_DURING, 5, 10);
	end = report_testing_end_of(s);
	assert_int_equal(number(end, "stalled_ms"), 4500);
	assert_string_equal(get(end, "explained"), "0.033");
	assert_string_equal(get(end, "verdict"), "partial");
	assert_non_null(strstr(get(end, "verdict_reason"), "150 ms of 4500 ms"));
	assert_int_equal(number(end, "few_samples"), 10);
	assert_non_null(strstr(get(end, "headline"), ", by 10 samples only"));
	json_object_put(end);
}

/* Stacks of most of the stalled time explain it. */
static void test_explained(void **state)
{
	struct session_result *s = new_io_session();
	json_object *end;

	add_whole(s, PHASE_ONSET, 3, 40);
	add_whole(s, PHASE_DURING, 5, 300);
	end = report_testing_end_of(s);
	assert_string_equal(get(end, "explained"), "0.755");
	assert_string_equal(get(end, "verdict"), "complete");
	assert_false(json_object_object_get_ex(end, "verdict_reason", NULL));
	assert_false(json_object_object_get_ex(end, "few_samples", NULL));
	assert_null(strstr(get(end, "headline"), "samples only"));
	json_object_put(end);
}

/* More than all of it is all of it. */
static void test_explained_whole(void **state)
{
	struct session_result *s = new_io_session();
	json_object *end;

	add_whole(s, PHASE_DURING, 5, 700);
	end = report_testing_end_of(s);
	assert_string_equal(get(end, "explained"), "1.000");
	json_object_put(end);
}

/* Returns the explained part of 4.5 s of a session that ran for 0.45 s and waited so for a CPU. */
static double explain_queue(enum resource resource, uint64_t exact_ms, uint64_t late_ns,
			    unsigned int onset_looks, unsigned int during_looks)
{
	static const struct pinned_maps pins;
	static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
	static const struct signal_target target;
	struct session_result *s = new_io_session();
	struct signal *runq = signals_new(SIGNAL_RUNQ, &host, &target);
	struct queue_waits queue = { .pools.late_ns = late_ns };
	json_object *end;
	double explained;

	assert_non_null(runq);
	s->reason.when.resource = resource;
	queue.pools.all.part_ns[ACCOUNT_QUEUE] = exact_ms * NSEC_PER_MSEC;
	runq->off_reason = exact_ms ? NULL : "no broker answers";
	runq->evidence = exact_ms ? &queue : NULL;
	s->signals[SIGNAL_RUNQ] = runq;
	add_whole(s, PHASE_DURING, 5, 45);
	if (onset_looks)
		add_queued(s, PHASE_ONSET, 7, onset_looks);
	if (during_looks)
		add_queued(s, PHASE_DURING, 9, during_looks);
	end = report_testing_end_of(s);
	explained = json_object_get_double(json_object_object_get(end, "explained"));
	json_object_put(end);
	return explained;
}

static void expect_queue(double explained, double expected)
{
	if (explained < expected - 0.0015 || explained > expected + 0.0015)
		fail_msg("%f is explained, not %f", explained, expected);
}

/* The exact waits for a CPU stand in place of the looks' of during, and of nothing else. */
static void test_explained_by_queue(void **state)
{
	expect_queue(explain_queue(RESOURCE_CPU, 0, 0, 0, 90), 0.300);
	expect_queue(explain_queue(RESOURCE_CPU, 2250, 0, 0, 90), 0.600);
	expect_queue(explain_queue(RESOURCE_CPU, 2250, 0, 45, 90), 0.700);
	expect_queue(explain_queue(RESOURCE_CPU, 450, 0, 0, 90), 0.200);
	expect_queue(explain_queue(RESOURCE_CPU, 450, 1, 0, 90), 0.300);
	expect_queue(explain_queue(RESOURCE_IO, 2250, 0, 0, 90), 0.100);
}

/* No known thread stalled: nothing is to be explained. */
static void test_request_explains_nothing(void **state)
{
	struct session_result *s = report_testing_new_session("/api");
	json_object *end;

	add_whole(s, PHASE_DURING, 5, 3);
	end = report_testing_end_of(s);
	assert_string_equal(get(end, "verdict"), "complete");
	assert_false(json_object_object_get_ex(end, "explained", NULL));
	assert_false(json_object_object_get_ex(end, "stalled_ms", NULL));
	json_object_put(end);
}

/* A cgroup below found no room among the watched ones: no count of the ledger has its ticks. */
static void test_left_out(void **state)
{
	struct session_result *s = report_testing_new_session("/api");
	json_object *end;

	s->left_out = 2;
	add_whole(s, PHASE_DURING, 5, 3);
	end = report_testing_end_of(s);
	assert_string_equal(get(end, "verdict"), "partial");
	assert_non_null(strstr(get(end, "verdict_reason"), "2 cgroups below"));
	json_object_put(end);
}

/* Returns the last line of a session of 1 s with looks this far apart. */
static json_object *end_with_looks(uint64_t longest_ms, uint64_t skipped)
{
	static const struct pinned_maps pins;
	static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
	static const struct signal_target target;
	static struct look_coverage looks;

	looks = (struct look_coverage){ .passes = 5,
					.skipped = skipped,
					.left_out = 3 * skipped,
					.longest_ns = longest_ms * NSEC_PER_MSEC,
					.session_ns = NSEC_PER_SEC,
					.permille = 2 };
	struct session_result *s = report_testing_new_session("/api");
	struct signal *offcpu = signals_new(SIGNAL_OFFCPU, &host, &target);

	assert_non_null(offcpu);
	offcpu->evidence = &looks;
	offcpu->taken->left_out = looks.left_out;
	s->signals[SIGNAL_OFFCPU] = offcpu;
	add_whole(s, PHASE_DURING, 5, 3);
	return report_testing_end_of(s);
}

/* The budget of the looks left out so many that two are further apart than a tenth of the session.
 */
static void test_few_looks(void **state)
{
	json_object *end = end_with_looks(101, 15), *ledger;

	assert_string_equal(get(end, "verdict"), "partial");
	assert_non_null(strstr(get(end, "verdict_reason"), "up to 101 ms apart in 1000 ms"));
	assert_non_null(strstr(get(end, "verdict_reason"),
			       "(--looks-permille 2) skipped 15 of 20 sampling passes"));
	ledger = json_object_object_get(json_object_object_get(end, "ledger"), "offcpu");
	assert_int_equal(number(json_object_object_get(ledger, "left_out"), "budget"), 45);
	json_object_put(end);
	end = end_with_looks(100, 15);
	assert_string_equal(get(end, "verdict"), "complete");
	json_object_put(end);
	/* It was the machine that kept them apart. */
	end = end_with_looks(500, 0);
	assert_string_equal(get(end, "verdict"), "complete");
	ledger = json_object_object_get(json_object_object_get(end, "ledger"), "offcpu");
	assert_null(json_object_object_get(ledger, "left_out"));
	json_object_put(end);
}

/* A stack of a cgroup below the session's names it; one without a path has the reason. */
static void test_in_cgroup(void **state)
{
	struct session_result *s = report_testing_new_session("/api");
	struct stack_table *stacks = &report_testing_taken_by(s)->stacks;
	json_object *all;

	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	for (unsigned int i = 0; i < 3; i++)
		report_testing_add(s, PHASE_DURING, i, 3, 0, 30 - i);
	stacks->items[0]->cgroup_id = s->cgroup_id;
	stacks->items[1]->cgroup_id = s->cgroup_id + 1;
	stacks->items[2]->cgroup_id = s->cgroup_id + 2;
	stack_table_name(stacks, s->cgroup_id + 1, "/api/child");
	report_testing_report(s);
	all = report_testing_finish();
	assert_false(json_object_object_get_ex(at(all, 0), "in_cgroup", NULL));
	assert_string_equal(get(at(all, 1), "in_cgroup"), "/api/child");
	assert_int_equal(number(at(all, 1), "in_cgroup_id"), s->cgroup_id + 1);
	assert_null(json_object_object_get(at(all, 2), "in_cgroup"));
	assert_non_null(strstr(get(at(all, 2), "in_cgroup_reason"), "gone"));
	json_object_put(all);
	session_result_free(s);
}

#define EACH(test) \
	cmocka_unit_test_setup_teardown(test, report_testing_setup, report_testing_teardown)

UNIT_TESTS(session_verdict)
{
	const struct CMUnitTest tests[] = {
		EACH(test_unsampled),	    EACH(test_partly_sampled),
		EACH(test_missing_signal),  EACH(test_missing_named_signal),
		EACH(test_mostly_broken),   EACH(test_waits_broken),
		EACH(test_one_wait_broken), EACH(test_silent_gap),
		EACH(test_too_many_ticks),  EACH(test_io_waited),
		EACH(test_explained),	    EACH(test_request_explains_nothing),
		EACH(test_explained_whole), EACH(test_left_out),
		EACH(test_in_cgroup),	    EACH(test_explained_by_queue),
		EACH(test_few_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
