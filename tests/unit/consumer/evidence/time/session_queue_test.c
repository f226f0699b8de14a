/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about waits for a CPU, against their schemas. */
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/time/session_queue.h"

#include <string.h>

#include "consumer/evidence/time/queue_waits.h"
#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

static const char *cgroup = "/system.slice/api.service";

static struct session_result *new_session(const struct queue_waits *q, const struct ledger *ledger,
					  size_t line_bytes)
{
	struct session_result *s = report_testing_new_session(cgroup);
	struct signal *signal = signals_new(SIGNAL_RUNQ, &host, &target);

	assert_non_null(signal);
	signal->off_reason = NULL;
	signal->evidence = (void *)q;
	signal->counted = ledger;
	s->signals[SIGNAL_RUNQ] = signal;
	report_testing_begin(1u << 20, line_bytes, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	return s;
}

/* All waits are `ms` long, behind others. */
static struct queue_histogram waited(uint64_t waits, uint64_t ms)
{
	struct queue_histogram h = { .waits = { [20] = waits } };

	h.behind_ns[QUEUE_OTHERS] = ms * NSEC_PER_MSEC;
	return h;
}

static void test_lines(void **state)
{
	struct queue_blamed blamed[] = {
		{ .row = { .cgroup_id = 9, .path = (char *)"/batch" }, .ns = 640 * NSEC_PER_MSEC },
		{ .row = { .cgroup_id = 10, .unnamed = "gone" }, .ns = 9 * NSEC_PER_MSEC },
	};
	struct thread_pool items[12] = {};
	struct queue_waits q = { .pools = { .items = items, .count = 12 } };
	const struct ledger ledger = { .attempted = 812, .emitted = 812 };
	struct session_result *s;
	json_object *all, *line;

	q.pools.all.queue = waited(812, 812);
	for (uint32_t i = 0; i < 12; i++)
		items[i] = (struct thread_pool){ .tgid = 70 + i, .queue = waited(i, i) };
	q.longest[0] = (struct queue_longest){ 5, 6, 81, 77, "w\x01rker-3" };
	q.n_longest = 1;
	q.blame.count = 2;
	q.blame.items = blamed;
	q.blame.rest = 3;
	q.blame.rest_ns = NSEC_PER_MSEC;
	s = new_session(&q, &ledger, 8192);
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 1 + 8 + 3 + 1);
	line = at(all, 0);
	assert_string_equal(get(line, "type"), "histogram");
	assert_int_equal(number(line, "count"), 812);
	assert_int_equal(json_object_array_length(json_object_object_get(line, "longest")), 1);
	assert_int_equal(number(json_object_object_get(at(all, 1), "key"), "pid"), 81);
	line = at(all, 9);
	assert_string_equal(get(line, "type"), "neighbour");
	assert_string_equal(get(line, "neighbour"), "/batch");
	assert_int_equal(number(line, "queue_ms"), 640);
	assert_int_equal(number(at(all, 11), "others"), 3);
	line = json_object_object_get(json_object_object_get(at(all, 12), "ledger"), "runq");
	assert_int_equal(number(line, "attempted"), 812);
	assert_string_equal(get(at(all, 12), "verdict"), "complete");
	json_object_put(all);
	session_result_free(s);
}

/* A line without room for all has fewer of the longest waits. */
static void test_longest_line(void **state)
{
	struct queue_waits q = { .n_longest = QUEUE_LONGEST };
	const struct ledger ledger = {};
	char path[1024] = "/";
	struct session_result *s;
	json_object *all;

	memset(path + 1, 'x', sizeof(path) - 2);
	cgroup = path;
	memset(&q.pools.all.queue, 0x0f, sizeof(q.pools.all.queue));
	for (size_t i = 0; i < QUEUE_LONGEST; i++) {
		q.longest[i] =
			(struct queue_longest){ UINT64_MAX, UINT64_MAX, 4194304, 4194304, "" };
		memset(q.longest[i].comm, 1, COMM_BYTES - 1);
	}
	s = new_session(&q, &ledger, 4096);
	cgroup = "/system.slice/api.service";
	report_testing_report(s);
	all = report_testing_finish();
	assert_string_equal(get(at(all, 0), "type"), "histogram");
	assert_in_range(json_object_array_length(json_object_object_get(at(all, 0), "longest")), 1,
			QUEUE_LONGEST - 1);
	json_object_put(all);
	session_result_free(s);
}

/* The headline names the cgroup that had the CPU for a quarter of the waits and more. */
static void test_headline(void **state)
{
	struct queue_blamed blamed = { .row = { .cgroup_id = 9, .path = (char *)"/batch" },
				       .ns = 640 * NSEC_PER_MSEC };
	struct queue_waits q = {};
	const struct ledger ledger = {};
	struct session_result *s = new_session(&q, &ledger, 8192);
	char text[256];

	assert_int_equal(session_queue_headline(s, text, sizeof(text)), 0);
	q.pools.all.queue = waited(812, 812);
	assert_int_equal(session_queue_headline(s, text, sizeof(text)), 0);
	q.blame.count = 1;
	q.blame.items = &blamed;
	assert_true(session_queue_headline(s, text, sizeof(text)) > 0);
	assert_string_equal(text, ", 640 of 812 ms behind /batch");
	q.blame.items[0].ns = 100 * NSEC_PER_MSEC;
	assert_int_equal(session_queue_headline(s, text, sizeof(text)), 0);
	q.blame.items[0].ns = 640 * NSEC_PER_MSEC;
	q.blame.items[0].row.path = NULL;
	assert_int_equal(session_queue_headline(s, text, sizeof(text)), 0);
	json_object_put(report_testing_finish());
	session_result_free(s);
}

/* Waits without an account are in the ledger, and the verdict reports them. */
static void test_lost(void **state)
{
	struct queue_waits q = {};
	const struct ledger ledger = { .attempted = 100,
				       .emitted = 64,
				       .lost = { [DROP_THREADS_FULL] = 36 } };
	struct session_result *s = new_session(&q, &ledger, 8192);
	json_object *all;

	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 2);
	assert_string_equal(get(at(all, 1), "verdict"), "partial");
	assert_non_null(strstr(get(at(all, 1), "verdict_reason"), "36 of 100 waits for a CPU"));
	json_object_put(all);
	session_result_free(s);
}

UNIT_TESTS(session_queue)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_longest_line, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_headline, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_lost, report_testing_setup,
						report_testing_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
