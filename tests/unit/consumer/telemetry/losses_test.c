/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters that grew become one error line each, with their numbers; those that stand still none.
 */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <bpf/bpf.h>

#include "consumer/telemetry/losses.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"

static struct fake *fake;

static int setup(void **state)
{
	fake = fake_new();
	return 0;
}

static int teardown(void **state)
{
	if (fake)
		fake_free(fake);
	fake = NULL;
	return 0;
}

/* Looks now, however short the last look lies back. */
static void look(void)
{
	fake->a.losses.checked_ns = 0;
	losses_check(&fake->a.losses);
}

/* The last error line has this code and this count. */
static void is_last(const char *code, const char *count)
{
	_cleanup_json_ json_object *line = fake_last(fake, "error");

	assert_non_null(line);
	assert_string_equal(fake_text(line, "code"), code);
	assert_string_equal(fake_text(line, "count"), count);
}

/* Later than SCHEDULE_REPAIR_NS after the last line about events, and after their scan. */
static void time_passes(void)
{
	fake->a.losses.events_ns = clock_mono_ns() - SCHEDULE_REPAIR_NS;
	fake->a.schedule.scan_due_ns = 0;
}

static void events_lost(uint64_t each, uint64_t limited)
{
	uint32_t cpus = fake->a.pins.abi.cpus_possible, zero = 0;
	_cleanup_free_ struct totals *totals = calloc(cpus, sizeof(*totals));

	assert_non_null(totals);
	for (uint32_t i = 0; i < cpus; i++)
		totals[i] = (struct totals){ .events_lost = each, .events_limited = limited };
	assert_int_equal(bpf_map_update_elem(fake->a.pins.totals_fd, &zero, totals, BPF_ANY), 0);
}

/* Of all CPUs together; what came since the last line, and never twice. A scan finds the missed. */
static void test_events(void **state)
{
	uint32_t cpus;
	char count[16];

	if (!fake)
		skip();
	cpus = fake->a.pins.abi.cpus_possible;
	look();
	assert_int_equal(fake_count(fake, "error"), 0);
	assert_int_equal(fake->a.schedule.scan_due_ns, 0);
	events_lost(3, 0);
	look();
	snprintf(count, sizeof(count), "%u", 3 * cpus);
	is_last("events_full", count);
	assert_true(fake->a.schedule.scan_due_ns > 0);
	time_passes();
	look();
	assert_int_equal(fake_count(fake, "error"), 1);
	assert_int_equal(fake->a.schedule.scan_due_ns, 0);
	events_lost(5, 0);
	look();
	snprintf(count, sizeof(count), "%u", 2 * cpus);
	is_last("events_full", count);
}

/* However much is held back, one scan and one line a kind in SCHEDULE_REPAIR_NS; and nothing is
 * left out. */
static void test_events_held_back(void **state)
{
	uint64_t now_ns = clock_mono_ns();
	char count[16];

	if (!fake)
		skip();
	fake->a.schedule.scanned_ns = now_ns;
	for (uint64_t i = 1; i <= 5; i++) {
		events_lost(0, i);
		look();
	}
	assert_int_equal(fake_count(fake, "error"), 1);
	assert_true(fake->a.schedule.scan_due_ns >= now_ns + SCHEDULE_REPAIR_NS);
	time_passes();
	look();
	assert_int_equal(fake_count(fake, "error"), 2);
	snprintf(count, sizeof(count), "%u", 4 * fake->a.pins.abi.cpus_possible);
	is_last("events_limited", count);
	/* The scan came between, and an earlier request is not repeated. */
	assert_int_equal(fake->a.schedule.scan_due_ns, 0);
}

/* An urgent scan does not wait for the one that repairs. */
static void test_repair_holds_up_nobody(void **state)
{
	uint64_t now_ns = clock_mono_ns();

	if (!fake)
		skip();
	fake->a.schedule.scanned_ns = now_ns;
	schedule_repair_soon(&fake->a.schedule);
	assert_true(fake->a.schedule.scan_due_ns >= now_ns + SCHEDULE_REPAIR_NS);
	schedule_scan_soon(&fake->a.schedule);
	assert_true(fake->a.schedule.scan_due_ns < now_ns + NSEC_PER_SEC);
	schedule_repair_soon(&fake->a.schedule);
	assert_true(fake->a.schedule.scan_due_ns < now_ns + NSEC_PER_SEC);
}

static void test_once_a_second(void **state)
{
	if (!fake)
		skip();
	look();
	fake->a.counts.processes_full = 4;
	losses_check(&fake->a.losses);
	assert_int_equal(fake_count(fake, "error"), 0);
	fake->a.losses.checked_ns = clock_mono_ns() - NSEC_PER_SEC - 1;
	losses_check(&fake->a.losses);
	is_last("targets_full", "4");
}

/* Bad records are those of all rings and of the sampler's decoder together. */
static void test_tables(void **state)
{
	if (!fake)
		skip();
	fake->a.counts.processes_full = 7;
	look();
	is_last("targets_full", "7");
	fake->a.counts.matches_full = 9;
	look();
	is_last("targets_full", "9");
	fake->a.counts.bad_records = 1;
	fake->a.pins.samples.bad = 2;
	fake->a.pins.events.bad = 3;
	fake->a.pins.errors.bad = 4;
	look();
	is_last("bad_record", "10");
	fake->a.pins.events.bad = 5;
	look();
	is_last("bad_record", "2");
	assert_int_equal(fake_count(fake, "error"), 4);
}

/* A text without a newline is dropped and counted, as is a line that could not be made. */
static void test_dropped_lines(void **state)
{
	if (!fake)
		skip();
	for (int i = 0; i < 3; i++)
		assert_false(output_queue_put(fake->a.output, " ", 1, 1));
	output_queue_count_dropped(fake->a.output, 2);
	look();
	is_last("queue_full", "5");
	look();
	assert_int_equal(fake_count(fake, "error"), 1);
}

UNIT_TESTS(losses)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_events_held_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_repair_holds_up_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(test_once_a_second, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dropped_lines, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
