/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about memory that threads looked for, against their schemas. */
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/memory/session_reclaim.h"

#include <string.h>
#include <unistd.h>

#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

#define NO_DEVICE (4095u << 20 | 1048575u) /* this machine has no such one */

static struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

static struct session_result *new_session(const struct reclaim_times *all)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct signal *signal = signals_new(SIGNAL_RECLAIM, &host, &target);

	assert_non_null(signal);
	signal->off_reason = NULL;
	signal->evidence = (void *)all;
	signal->counted = all ? &all->ledger : NULL;
	s->signals[SIGNAL_RECLAIM] = signal;
	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	return s;
}

static json_object *report(struct session_result *s)
{
	report_testing_report(s);
	return report_testing_finish();
}

static struct reclaim_neighbour others[2] = {
	{ .row = { .cgroup_id = 9, .path = (char *)"/batch" },
	  .count = 60,
	  .pages = 10,
	  .kind_ns[RECLAIM_DIRECT] = 2 * NSEC_PER_SEC },
	{ .row = { .cgroup_id = 10, .unnamed = "gone" } },
};

static void test_lines(void **state)
{
	struct reclaim_part items[2] = { { .kind = RECLAIM_THROTTLE, .device = NO_DEVICE },
					 { .kind = RECLAIM_LIMIT } };
	struct reclaim_times all = { .items = items, .count = 2, .rest = 3 };
	struct session_result *s;
	json_object *lines, *line;

	pins.abi.dirty_pauses = 1;
	all.neighbours = others;
	items[0].own = (struct reclaim_time){ .count = 30,
					      .time_ns = 3 * NSEC_PER_SEC,
					      .whole_ns = 2 * NSEC_PER_SEC,
					      .longest_ns = 7,
					      .open = 1,
					      .open_ns = NSEC_PER_SEC };
	items[0].own.steps[20] = 30;
	items[0].everybody_count = 90;
	items[1].own.orphans = 2;
	items[1].own.pages = 5;
	all.n_neighbours = 2;
	all.more_neighbours = 4;
	all.ledger = (struct ledger){ .attempted = 33, .emitted = 32 };
	all.ledger.lost[DROP_RECLAIM_FULL] = 1;
	s = new_session(&all);
	lines = report(s);
	/* Two kinds, of which one has a histogram, and the rest; three neighbours; the end. */
	assert_int_equal(json_object_array_length(lines), 2 + 1 + 1 + 3 + 1);
	line = at(lines, 0);
	assert_string_equal(get(line, "type"), "reclaim");
	assert_string_equal(get(line, "kind"), "throttle");
	assert_string_equal(get(line, "device"), "4095:1048575");
	assert_int_equal(number(line, "count"), 30);
	assert_int_equal(number(line, "p50"), 1u << 20);
	assert_int_equal(number(json_object_object_get(line, "everybody"), "count"), 90);
	line = at(lines, 1);
	assert_string_equal(get(line, "type"), "histogram");
	assert_string_equal(get(json_object_object_get(line, "key"), "kind"), "throttle");
	assert_int_equal(number(line, "sum"), 2 * NSEC_PER_SEC);
	line = at(lines, 2);
	assert_string_equal(get(line, "kind"), "limit");
	assert_int_equal(number(line, "orphans"), 2);
	assert_int_equal(number(line, "reclaimed_bytes"), 5 * sysconf(_SC_PAGESIZE));
	assert_false(json_object_object_get_ex(line, "device", NULL));
	assert_int_equal(number(at(lines, 3), "others"), 3);
	line = at(lines, 4);
	assert_string_equal(get(line, "neighbour"), "/batch");
	assert_int_equal(number(line, "direct_ms"), 2000);
	assert_false(json_object_object_get_ex(line, "limit_ms", NULL));
	line = at(lines, 7);
	assert_int_equal(number(json_object_object_get(line, "reclaim"), "throttle_ms"), 3000);
	assert_int_equal(number(json_object_object_get(line, "reclaim"), "orphans"), 2);
	assert_string_equal(get(line, "verdict"), "partial");
	assert_non_null(strstr(get(line, "verdict_reason"), "1 of 33 reclaim events"));
	json_object_put(lines);
	session_result_free(s);
}

/*
 * Without stretches there is no line but the end; a value that the kernel does not report is not 0.
 */
static void test_none(void **state)
{
	const struct reclaim_times none = {};
	struct session_result *s;
	json_object *lines, *said;

	pins.abi.dirty_pauses = 0;
	s = new_session(&none);
	lines = report(s);
	assert_int_equal(json_object_array_length(lines), 1);
	said = json_object_object_get(at(lines, 0), "reclaim");
	assert_int_equal(number(said, "direct_ms"), 0);
	assert_true(json_object_object_get_ex(said, "throttle_ms", NULL));
	assert_null(json_object_object_get(said, "throttle_ms"));
	assert_non_null(get(said, "throttle_reason"));
	json_object_put(lines);
	session_result_free(s);
}

static void test_missing(void **state)
{
	struct session_result *s = new_session(NULL);
	json_object *lines;

	s->signals[SIGNAL_RECLAIM]->off_reason = "the broker said no";
	lines = report(s);
	assert_string_equal(get(at(lines, 0), "reclaim_reason"), "the broker said no");
	json_object_put(lines);
	session_result_free(s);
}

UNIT_TESTS(session_reclaim)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_none, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_missing, report_testing_setup,
						report_testing_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
