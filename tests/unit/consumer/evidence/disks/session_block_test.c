/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about requests to disks, against their schemas. */
#include "consumer/evidence/disks/session_block.h"
#include "consumer/evidence/evidence_kinds.h"

#include <string.h>

#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

#define NO_DEVICE (4095u << 20 | 1048575u) /* this machine has no such one */

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

static struct session_result *new_session(const struct block_requests *all)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct signal *signal = signals_new(SIGNAL_BLOCK, &host, &target);

	assert_non_null(signal);
	signal->off_reason = NULL;
	signal->evidence = (void *)all;
	signal->counted = all ? &all->ledger : NULL;
	s->signals[SIGNAL_BLOCK] = signal;
	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	return s;
}

static struct block_times took(uint64_t requests)
{
	struct block_times t = { .requests = requests,
				 .bytes = requests * 4096,
				 .queue_ns = 1,
				 .service_ns = requests * NSEC_PER_MSEC };

	t.queue[0] = t.service[20] = requests;
	return t;
}

static json_object *report(struct session_result *s)
{
	report_testing_report(s);
	return report_testing_finish();
}

static void test_lines(void **state)
{
	struct block_disk items[2] = { { .device = NO_DEVICE, .op = BLOCK_WRITE, .all = took(30) },
				       { .device = NO_DEVICE, .op = BLOCK_READ } };
	struct block_neighbour others[2] = {
		{ .row = { .cgroup_id = 9, .path = (char *)"/batch" },
		  .device = NO_DEVICE,
		  .requests = 60,
		  .service_ns = 2 * NSEC_PER_SEC,
		  .disk_service_ns = 3 * NSEC_PER_SEC },
		{ .row = { .cgroup_id = 10, .unnamed = "gone" } },
	};
	struct block_requests all = {
		.items = items, .count = 2, .rest = 3, .neighbours = others, .n_neighbours = 2
	};
	struct session_result *s;
	json_object *lines, *line;

	items[0].sizes[0] = took(10);
	items[0].sizes[BLOCK_SIZES - 1] = took(20);
	items[0].written_back = 4;
	items[0].open = 2;
	items[0].everybody_requests = 90;
	items[0].all.longest_ns = 7;
	all.more_neighbours = 4;
	all.ledger = (struct ledger){ .attempted = 33, .emitted = 32 };
	all.ledger.lost[DROP_REQUESTS_FULL] = 1;
	s = new_session(&all);
	lines = report(s);
	/* Two disks and the rest, six histograms of the first, three neighbours, the end. */
	assert_int_equal(json_object_array_length(lines), 3 + 6 + 3 + 1);
	line = at(lines, 0);
	assert_string_equal(get(line, "type"), "disk");
	assert_string_equal(get(line, "device"), "4095:1048575");
	assert_string_equal(get(line, "op"), "write");
	assert_int_equal(number(line, "requests"), 30);
	assert_int_equal(number(json_object_object_get(line, "service"), "p50"), 1u << 20);
	assert_int_equal(number(json_object_object_get(line, "everybody"), "requests"), 90);
	line = json_object_object_get(at(lines, 1), "key");
	assert_string_equal(get(line, "part"), "queue");
	assert_int_equal(number(line, "size_bytes"), 4096);
	line = json_object_object_get(at(lines, 4), "key");
	assert_true(json_object_object_get_ex(line, "size_bytes", NULL));
	assert_null(json_object_object_get(line, "size_bytes"));
	assert_false(json_object_object_get_ex(json_object_object_get(at(lines, 6), "key"),
					       "size_bytes", NULL));
	assert_int_equal(number(at(lines, 8), "others"), 3);
	line = at(lines, 9);
	assert_string_equal(get(line, "neighbour"), "/batch");
	assert_int_equal(number(line, "service_ms"), 2000);
	line = at(lines, 12);
	assert_int_equal(number(json_object_object_get(line, "block"), "requests"), 30);
	assert_string_equal(get(line, "verdict"), "partial");
	assert_non_null(strstr(get(line, "verdict_reason"), "1 of 33 disk requests"));
	json_object_put(lines);
	session_result_free(s);
}

/* Without requests there is no line but the end, which reports it. */
static void test_none(void **state)
{
	const struct block_requests none = {};
	struct session_result *s = new_session(&none);
	json_object *lines = report(s);

	assert_int_equal(json_object_array_length(lines), 1);
	assert_int_equal(number(json_object_object_get(at(lines, 0), "block"), "requests"), 0);
	json_object_put(lines);
	session_result_free(s);
}

static void test_missing(void **state)
{
	struct session_result *s = new_session(NULL);
	json_object *lines;

	s->signals[SIGNAL_BLOCK]->off_reason = "the broker said no";
	lines = report(s);
	assert_string_equal(get(at(lines, 0), "block_reason"), "the broker said no");
	json_object_put(lines);
	session_result_free(s);
}

UNIT_TESTS(session_block)
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
