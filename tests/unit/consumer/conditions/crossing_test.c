/* SPDX-License-Identifier: BSD-2-Clause */
/* Which growth of a total crosses a threshold, by how and over which time it was read. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/conditions/crossing.h"
#include "shared/tools/macro.h"

static struct psi_history history;

static int setup(void **state)
{
	return psi_history_init(&history, 112);
}

static int teardown(void **state)
{
	psi_history_done(&history);
	return 0;
}

static void read_at(uint64_t ms, uint64_t total_ms)
{
	const struct psi psi = { .some.total_us = total_ms * 1000, .has_full = true };

	psi_history_add(&history, ms * NSEC_PER_MSEC, &psi);
}

/* Compares the newest reading. */
static const struct psi_point *compare(const struct threshold *t)
{
	return crossing_compare(t, &history, psi_history_newest(&history));
}

/* Within a window of 10 s each reading sees the whole of one stall: it is one crossing. */
static void count_crossings_of_one_stall(enum threshold_way way)
{
	struct threshold t = { .way = way, .stall_ms = 1500, .window_ms = 10000 };
	unsigned int crossings = 0;

	for (uint64_t ms = 0; ms <= 30000; ms += 100) {
		read_at(ms, ms < 3000 ? 0 : ms < 5000 ? ms - 3000 : 2000);
		if (!compare(&t))
			continue;
		crossings++;
		t.crossed = *psi_history_newest(&history);
	}
	assert_int_equal(crossings, 1);
}

static void test_one_stall_by_scan(void **state)
{
	count_crossings_of_one_stall(THRESHOLD_SCAN);
}

static void test_one_stall_while_waiting(void **state)
{
	count_crossings_of_one_stall(THRESHOLD_WAITING);
}

/* A stall that goes on is a crossing again when as much has come on top. */
static void test_more_stall(void **state)
{
	struct threshold t = { .way = THRESHOLD_SCAN, .stall_ms = 300, .window_ms = 1000 };

	read_at(0, 0);
	read_at(1000, 300);
	assert_non_null(compare(&t));
	t.crossed = *psi_history_newest(&history);
	read_at(1500, 599);
	assert_null(compare(&t));
	read_at(1600, 600);
	assert_int_equal(compare(&t)->time_ns, 1000 * NSEC_PER_MSEC);
}

/* 306 of 1100 ms are 278 of 1000: below a threshold of 300 of 1000. */
static void test_older_point_calls_for_more(void **state)
{
	const struct threshold t = { .way = THRESHOLD_SCAN, .stall_ms = 300, .window_ms = 1000 };

	read_at(5000, 0);
	read_at(6100, 306);
	assert_null(compare(&t));
	psi_history_clear(&history);
	read_at(5000, 0);
	read_at(6100, 330);
	assert_non_null(compare(&t));
}

/* A young history calls for no less than the whole. */
static void test_younger_point(void **state)
{
	const struct threshold t = { .way = THRESHOLD_SCAN, .stall_ms = 300, .window_ms = 1000 };

	read_at(5000, 0);
	read_at(5400, 299);
	assert_null(compare(&t));
	read_at(5500, 300);
	assert_non_null(compare(&t));
}

/* Nothing moved until the scan went on, so all of the stall is of the end. */
static void test_after_pause(void **state)
{
	const struct threshold t = { .way = THRESHOLD_SCAN, .stall_ms = 300, .window_ms = 1000 };

	read_at(5000, 0);
	psi_history_pause(&history);
	read_at(7000, 300);
	assert_non_null(compare(&t));
	/* The pause goes on with the point when the history grows. */
	assert_int_equal(psi_history_resize(&history, 200), 0);
	assert_non_null(compare(&t));
}

/* The kernel reports that the stall was within a window; the points are seconds apart. */
static void test_by_trigger(void **state)
{
	const struct threshold t = { .way = THRESHOLD_TRIGGER, .stall_ms = 300, .window_ms = 1000 };

	read_at(5000, 0);
	read_at(10000, 300);
	assert_non_null(compare(&t));
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(crossing)
{
	const struct CMUnitTest tests[] = {
		EACH(test_one_stall_by_scan), EACH(test_one_stall_while_waiting),
		EACH(test_more_stall),	      EACH(test_older_point_calls_for_more),
		EACH(test_younger_point),     EACH(test_after_pause),
		EACH(test_by_trigger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
