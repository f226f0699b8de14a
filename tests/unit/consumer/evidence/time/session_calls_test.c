/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about system calls, against their schema. */
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/time/session_calls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "consumer/evidence/time/call_times.h"
#include "consumer/kernel/pinned_maps.h"
#include "tests/unit/consumer/testing/report_testing.h"

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

static struct session_result *new_session(const struct call_times *times,
					  const struct ledger *ledger)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct signal *signal = signals_new(SIGNAL_SYSCALL, &host, &target);

	assert_non_null(signal);
	signal->off_reason = NULL;
	signal->evidence = (void *)times;
	signal->counted = ledger;
	s->signals[SIGNAL_SYSCALL] = signal;
	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	return s;
}

/* Each number has its name or a reason, and calls without a line of their own are in the last. */
static void test_lines(void **state)
{
	struct call_time items[24] = {};
	const struct call_times times = { items, 24 };
	const struct ledger ledger = { .attempted = 10, .emitted = 10 };
	const uint32_t odd[] = { ACCOUNT_CALL_NONE, ACCOUNT_CALL_KERNEL, ACCOUNT_CALL_COMPAT,
				 4000 };
	struct session_result *s;
	json_object *all;

	for (uint32_t i = 0; i < 24; i++)
		items[i] =
			(struct call_time){ .call = i, .waits = 1, .wait_ns = i < 5 ? 50 - i : 10 };
	for (uint32_t i = 0; i < 24; i++)
		items[i].buckets[i] = 1;
	items[0].waits = items[0].buckets[3] = 10;
	items[0].buckets[0] = 0;
	items[1].call = odd[0];
	items[2].call = odd[1];
	items[3].call = odd[2];
	items[4].call = odd[3];
	items[0].call = SYS_futex;
	items[0].longest_ns = 9;
	items[0].longest_tid = items[0].longest_tgid = 5;
	strcpy(items[0].longest_comm, "w\x01");
	s = new_session(&times, &ledger);
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 20 + 1 + 8 + 1);
	assert_string_equal(get(at(all, 0), "call"), "futex");
	assert_int_equal(number(at(all, 0), "number"), SYS_futex);
	assert_int_equal(number(json_object_object_get(at(all, 0), "longest"), "tid"), 5);
	for (size_t i = 1; i <= 4; i++) {
		assert_null(json_object_object_get(at(all, i), "call"));
		assert_non_null(get(at(all, i), "call_reason"));
	}
	assert_int_equal(number(at(all, 4), "number"), 4000);
	assert_false(json_object_object_get_ex(at(all, 1), "number", NULL));
	assert_int_equal(number(at(all, 20), "others"), 4);
	assert_int_equal(number(at(all, 20), "wait_ns"), 40);
	assert_int_equal(number(at(all, 0), "p50_ns"), 3072);
	assert_int_equal(number(at(all, 0), "p99_ns"), 3072);
	assert_string_equal(get(at(all, 21), "type"), "histogram");
	assert_string_equal(get(json_object_object_get(at(all, 21), "key"), "call"), "futex");
	assert_int_equal(number(at(all, 21), "count"), 10);
	assert_int_equal(number(at(all, 21), "p90"), 3072);
	json_object_put(all);
	session_result_free(s);
}

static void add_ran(struct session_result *s, uint32_t call, uint32_t flags, unsigned int count)
{
	struct stack_sample *h = new_stack_sample(0, 1, &stack_sample_unknown);
	struct signal_stacks *taken = report_testing_taken_by(s);

	h->call = call;
	h->flags = flags;
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(stack_table_add(&taken->stacks, h, PHASE_DURING, 1000, NULL), 0);
	taken->phase[PHASE_DURING].emitted += count;
	taken->phase[PHASE_DURING].attempted += count;
	free(h);
}

/* Returns the line of that type with this `call`; NULL: the one with null. */
static json_object *find_line(json_object *all, const char *type, const char *call)
{
	for (size_t i = 0; i < json_object_array_length(all); i++) {
		const char *has = get(at(all, i), "call");

		if (!strcmp(get(at(all, i), "type"), type) &&
		    (call ? has && !strcmp(has, call) : !has))
			return at(all, i);
	}
	return NULL;
}

/* CPU time is next to waits, a call that never waited has a line, and the sums close. */
static void test_ran(void **state)
{
	struct call_time item = {
		.call = SYS_futex, .waits = 1, .wait_ns = 5000, .buckets = { [5] = 1 }
	};
	const struct call_times times = { &item, 1 };
	const struct ledger ledger = { .attempted = 1, .emitted = 1 };
	struct session_result *s = new_session(&times, &ledger);
	json_object *all, *end;
	double share;

	add_ran(s, SYS_futex, 0, 10);
	add_ran(s, SYS_getrandom, 0, 50);
	add_ran(s, ACCOUNT_CALL_NONE, SAMPLE_IN_USER, 30);
	add_ran(s, ACCOUNT_CALL_NONE, 0, 10);
	report_testing_report(s);
	all = report_testing_finish();
	end = json_object_object_get(at(all, json_object_array_length(all) - 1), "cpu_samples");
	assert_int_equal(number(end, "all"), 100);
	assert_int_equal(number(end, "user"), 30);
	assert_int_equal(number(end, "calls"), 60);
	assert_int_equal(number(end, "faults"), 10);
	assert_int_equal(number(find_line(all, "syscall", "getrandom"), "cpu_samples"), 50);
	assert_int_equal(number(find_line(all, "syscall", "getrandom"), "waits"), 0);
	assert_int_equal(number(find_line(all, "syscall", "futex"), "cpu_samples"), 10);
	assert_int_equal(number(find_line(all, "syscall", "futex"), "waits"), 1);
	assert_int_equal(number(find_line(all, "syscall", NULL), "cpu_samples"), 10);
	share = json_object_get_double(
		json_object_object_get(find_line(all, "syscall", "getrandom"), "cpu_share"));
	assert_true(share > 0.499 && share < 0.501);
	assert_int_equal(number(find_line(all, "stack", "getrandom"), "count"), 50);
	json_object_put(all);
	session_result_free(s);
}

/* Waits without room are in the ledger, and the verdict reports it. */
static void test_lost(void **state)
{
	const struct call_times times = {};
	const struct ledger ledger = { .attempted = 100,
				       .emitted = 64,
				       .lost = { [DROP_CALLS_FULL] = 36 } };
	struct session_result *s = new_session(&times, &ledger);
	json_object *all;

	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 1);
	assert_string_equal(get(at(all, 0), "verdict"), "partial");
	assert_non_null(strstr(get(at(all, 0), "verdict_reason"), "table of system calls"));
	json_object_put(all);
	session_result_free(s);
}

UNIT_TESTS(session_calls)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_ran, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_lost, report_testing_setup,
						report_testing_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
