/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions with known stacks, written to a file that the validator of the schemas reads. */
#include "tests/unit/consumer/testing/own_time_testing.h"
#include "tests/unit/consumer/testing/report_testing.h"

#include <stdio.h>
#include <unistd.h>

#include "consumer/report/report_thread.h"
#include "consumer/report/session_report.h"
#include "consumer/session/line_bytes.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static void test_order(void **state)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	json_object *all, *frames, *end;

	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	report_testing_add(s, PHASE_BEFORE, 50, 3, 0, 40);
	report_testing_add(s, PHASE_DURING, 1, 2, 0, 5);
	report_testing_add(s, PHASE_DURING, 8, 4, 2, 9);
	report_testing_taken_by(s)->phase[PHASE_DURING].attempted += 2;
	report_testing_taken_by(s)->phase[PHASE_DURING].lost[DROP_RING_FULL] = 2;
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 4);
	/* During before before, the heavier first. */
	assert_int_equal(number(at(all, 0), "count"), 9);
	assert_string_equal(get(at(all, 0), "phase"), "during");
	assert_int_equal(number(at(all, 0), "threads"), 3);
	assert_int_equal(number(at(all, 0), "weight_ns"), 90000000);
	assert_int_equal(number(at(all, 1), "count"), 5);
	assert_int_equal(number(at(all, 2), "count"), 40);
	assert_string_equal(get(at(all, 2), "phase"), "before");
	frames = json_object_object_get(at(all, 0), "frames");
	assert_int_equal(json_object_array_length(frames), 6);
	assert_string_equal(get(json_object_array_get_idx(frames, 0), "fn"), "fn_008_00000");
	assert_string_equal(get(json_object_array_get_idx(frames, 0), "module"), "xfs");
	assert_int_equal(number(json_object_array_get_idx(frames, 0), "offset"), 4);
	assert_int_equal(number(json_object_array_get_idx(frames, 1), "offset"), 8);
	assert_string_equal(get(json_object_array_get_idx(frames, 5), "why"), "no_mapping");
	end = at(all, 3);
	assert_string_equal(get(end, "type"), "session.end");
	assert_string_equal(get(end, "session"), "0000000000001234");
	assert_string_equal(get(end, "verdict"), "partial");
	assert_int_equal(number(end, "duration_ms"), 3000);
	assert_non_null(strstr(get(end, "headline"), "/system.slice/api.service captured"));
	json_object_put(all);
	session_result_free(s);
}

static void test_empty(void **state)
{
	struct session_result *s = report_testing_new_session("/idle");
	json_object *all;

	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 1);
	assert_string_equal(get(at(all, 0), "verdict"), "complete");
	assert_non_null(strstr(get(at(all, 0), "headline"), "none of its threads ran"));
	json_object_put(all);
	session_result_free(s);
}

/* All parts of the one stack, put together: the frames as they were, none twice, none missing. */
static size_t check_parts(json_object *all, uint16_t frames)
{
	size_t parts = (size_t)number(at(all, 0), "parts"), next = 0;
	int64_t stack_id = number(at(all, 0), "stack_id");

	assert_int_equal(json_object_array_length(all), parts + 1);
	for (size_t i = 0; i < parts; i++) {
		json_object *list = json_object_object_get(at(all, i), "frames");

		assert_int_equal(number(at(all, i), "part"), i + 1);
		assert_int_equal(number(at(all, i), "parts"), parts);
		assert_int_equal(number(at(all, i), "stack_id"), stack_id);
		assert_true(json_object_array_length(list) > 0);
		for (size_t k = 0; k < json_object_array_length(list); k++, next++) {
			json_object *frame = json_object_array_get_idx(list, k);
			unsigned int n = ~0u;

			if (next >= STACK_FRAMES) {
				assert_string_equal(get(frame, "kind"), "user");
				continue;
			}
			assert_int_equal(sscanf(get(frame, "fn"), "fn_%u_", &n), 1);
			assert_int_equal(n, next + 3);
		}
	}
	assert_int_equal(next, frames);
	return parts;
}

static void test_parts(void **state)
{
	static const struct {
		size_t max_bytes;
		int name_bytes;
	} rows[] = { { 4096, 12 }, { 4096, 250 }, { 4096, 410 }, { 8192, 100 }, { 8192, 410 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct session_result *s = report_testing_new_session("/system.slice/api.service");
		json_object *all;

		report_testing_begin(1u << 20, rows[i].max_bytes, rows[i].name_bytes);
		assert_int_equal(output_queue_start(report_testing_lines.output), 0);
		report_testing_add(s, PHASE_DURING, 3, STACK_FRAMES, STACK_FRAMES, 4);
		report_testing_report(s);
		all = report_testing_finish();
		assert_true(check_parts(all, 2 * STACK_FRAMES) > 1);
		assert_int_equal(report_testing_taken_by(s)->phase[PHASE_DURING].emitted, 4);
		json_object_put(all);
		session_result_free(s);
		symbols_free(TAKE_PTR(report_testing_symbols));
		unlink(report_testing_path);
	}
}

#define BYTES_MAX (256u << 10)

/*
 * Names as long as they may be: once half of the bytes are used, frames keep module and offset
 * alone; what does not fit then is in the ledger. The limit holds.
 */
static void test_bytes(void **state)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct ledger *l = &report_testing_taken_by(s)->phase[PHASE_DURING];
	json_object *all, *frame, *end, *ledger;
	size_t bytes = 0, lines;

	report_testing_begin(1u << 20, 8192, 410);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	s->withheld_bytes = LINE_BYTES_SESSION - BYTES_MAX;
	for (uint16_t i = 0; i < 100; i++)
		report_testing_add(s, PHASE_DURING, i, STACK_FRAMES, 0, 200u - i);
	report_testing_report(s);
	all = report_testing_finish();
	lines = json_object_array_length(all) - 1;
	for (size_t i = 0; i < lines; i++)
		bytes += strlen(json_object_to_json_string_ext(at(all, i), JSON_C_TO_STRING_PLAIN));
	assert_in_range(bytes, BYTES_MAX / 2, BYTES_MAX + BYTES_MAX / 50);
	assert_true(l->lost[DROP_LINE_BYTES] > 0);
	assert_int_equal(l->attempted, l->emitted + ledger_lost(l));
	assert_string_equal(
		get(json_object_array_get_idx(json_object_object_get(at(all, 0), "frames"), 0),
		    "module"),
		"xfs");
	frame = json_object_array_get_idx(json_object_object_get(at(all, lines - 1), "frames"), 0);
	assert_null(json_object_object_get(frame, "fn"));
	assert_string_equal(get(frame, "why"), "line_bytes");
	assert_string_equal(get(frame, "module"), "xfs");
	assert_true(number(frame, "offset") > 0);
	assert_int_equal(number(at(all, lines - 1), "unnamed"), STACK_FRAMES);
	end = at(all, lines);
	assert_in_range(number(end, "line_bytes"), BYTES_MAX / 2, BYTES_MAX);
	ledger = json_object_object_get(json_object_object_get(end, "ledger"), "oncpu");
	assert_true(number(ledger, "nameless") > 0);
	assert_true(number(json_object_object_get(ledger, "lost"), "line_bytes") > 0);
	assert_int_equal(s->line_bytes, number(end, "line_bytes"));
	json_object_put(all);
	session_result_free(s);
}

/* No thread takes lines: those without room are in the ledger, and the sum still holds. */
static void test_queue_full(void **state)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct ledger *l = &report_testing_taken_by(s)->phase[PHASE_DURING];
	struct output_queue_stats stats;
	bool hurry = true;
	json_object *all;
	uint64_t count = 0;

	report_testing_begin(64u << 10, 8192, 40);
	for (unsigned int i = 0; i < FUNCTIONS; i++)
		report_testing_add(s, PHASE_DURING, i, 20, 20, i % 5 + 1);
	session_report_write(s, &report_testing_lines, report_testing_symbols, &hurry);
	assert_true(l->lost[DROP_QUEUE_FULL] > 0);
	assert_true(l->emitted > 0);
	assert_int_equal(l->attempted, l->emitted + ledger_lost(l));
	output_queue_stats(report_testing_lines.output, &stats);
	assert_true(stats.queued_bytes <= stats.queue_bytes);
	/* A quarter of the queue is the main thread's. */
	assert_true(stats.queued_bytes <= stats.queue_bytes / 4 * 3 + 2 * 8192);
	/*
	 * The ledger's emitted count equals the arrived lines, although lines are refused by the
	 * batch.
	 */
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	all = report_testing_finish();
	for (size_t i = 0; i < json_object_array_length(all); i++)
		if (!strcmp(get(at(all, i), "type"), "stack"))
			count += number(at(all, i), "count");
	assert_int_equal(count, l->emitted);
	json_object_put(all);
	session_result_free(s);
}

/* No line can hold even the head: each stack is accounted for, and its lines count as dropped. */
static void test_too_long(void **state)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct ledger *l = &report_testing_taken_by(s)->phase[PHASE_DURING];
	struct output_queue_stats stats;

	report_testing_begin(1u << 20, 300, 12);
	report_testing_add(s, PHASE_DURING, 1, 3, 0, 5);
	report_testing_add(s, PHASE_DURING, 7, 3, 0, 2);
	report_testing_report(s);
	assert_int_equal(l->emitted, 0);
	assert_int_equal(l->lost[DROP_QUEUE_FULL], 7);
	output_queue_stats(report_testing_lines.output, &stats);
	assert_true(stats.dropped_lines >= 3);
	assert_int_equal(stats.queued_bytes, 0);
	session_result_free(s);
}

/* The last line is never lost to its own length: names, paths and labels as long as they may be. */
static void test_end_long(void **state)
{
	static const size_t walls[] = { 4096, 8192 };

	for (size_t k = 0; k < ARRAY_SIZE(walls); k++) {
		struct session_result *s = report_testing_new_session(
			"/kubepods.slice/kubepods-burstable.slice/pod.slice");
		json_object *all, *end;
		char module_path[300];

		report_testing_begin(1u << 20, walls[k], 400);
		assert_int_equal(output_queue_start(report_testing_lines.output), 0);
		for (unsigned int i = 0; i < 12; i++) {
			struct stack_sample *h = new_stack_sample(0, 1, NULL);

			report_testing_add(s, PHASE_DURING, 10 * i, 2, 0, 3);
			snprintf(module_path, sizeof(module_path), "/nonexistent/%u/%0250d.so", i,
				 0);
			assert_int_equal(symbols_module(report_testing_symbols,
							&(struct file_identity){ .device = 1,
										 .inode = i + 1 },
							module_path, false, &h->frames[0].module),
					 0);
			assert_int_equal(stack_table_add(&report_testing_taken_by(s)->stacks, h,
							 PHASE_DURING, 1, NULL),
					 0);
			report_testing_taken_by(s)->phase[PHASE_DURING].emitted++;
			report_testing_taken_by(s)->phase[PHASE_DURING].attempted++;
			free(h);
		}
		report_testing_report(s);
		all = report_testing_finish();
		end = at(all, json_object_array_length(all) - 1);
		assert_string_equal(get(end, "type"), "session.end");
		assert_true(json_object_array_length(json_object_object_get(end, "top")) > 0);
		json_object_put(all);
		session_result_free(s);
		symbols_free(TAKE_PTR(report_testing_symbols));
		unlink(report_testing_path);
	}
}

/* The thread: sessions in the order they were handed over, all written at the stop. */
static void test_reporter(void **state)
{
	struct report_thread *reporter;
	json_object *all;
	int64_t last = -1;
	size_t ends = 0;

	report_testing_begin(1u << 20, 8192, 40);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	assert_int_equal(
		report_thread_new(&report_testing_lines, report_testing_symbols, &reporter), 0);
	for (unsigned int i = 0; i < 20; i++) {
		struct session_result *s = report_testing_new_session("/system.slice/api.service");

		s->cgroup_id = i + 1;
		for (unsigned int k = 0; k < 10; k++)
			report_testing_add(s, PHASE_DURING, i + k, 10, 5, 2);
		report_thread_put(reporter, s);
	}
	report_thread_stop(reporter, 5000);
	all = report_testing_finish();
	for (size_t i = 0; i < json_object_array_length(all); i++) {
		if (strcmp(get(at(all, i), "type"), "session.end") != 0)
			continue;
		assert_true(number(at(all, i), "cgroup_id") > last || !ends);
		last = number(at(all, i), "cgroup_id");
		ends++;
	}
	assert_int_equal(ends, 20);
	assert_int_equal(json_object_array_length(all), 20 * 11);
	json_object_put(all);
}

/* With an unread output the stop takes no longer than its limit. */
static void test_reporter_stuck(void **state)
{
	uint64_t started = own_time_ns();
	struct report_thread *reporter;

	report_testing_begin(64u << 10, 8192, 100);
	assert_int_equal(
		report_thread_new(&report_testing_lines, report_testing_symbols, &reporter), 0);
	for (unsigned int i = 0; i < 3; i++) {
		struct session_result *s = report_testing_new_session("/system.slice/api.service");

		for (unsigned int k = 0; k < 100; k++)
			report_testing_add(s, PHASE_DURING, i + k, 40, 5, 2);
		report_thread_put(reporter, s);
	}
	report_thread_stop(reporter, 300);
	assert_true(own_time_ns() - started < 2 * NSEC_PER_SEC);
	report_thread_stop(NULL, 1);
}

UNIT_TESTS(session_report)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_empty, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_parts, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_bytes, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_queue_full, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_too_long, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_end_long, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_reporter, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_reporter_stuck, report_testing_setup,
						report_testing_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
