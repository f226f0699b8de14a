/* SPDX-License-Identifier: BSD-2-Clause */
/* Times by length. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/signals/time_histogram.h"

/* The steps are half octaves, and ascend. */
static void test_bounds(void **state)
{
	const uint64_t first[] = { 1024, 1536, 2048, 3072, 4096, 6144 };

	for (unsigned int i = 0; i < sizeof(first) / sizeof(*first); i++)
		assert_int_equal(time_histogram_le_ns(i), first[i]);
	for (unsigned int i = 1; i < QUEUE_BUCKETS; i++)
		assert_true(time_histogram_le_ns(i) > time_histogram_le_ns(i - 1));
	assert_int_equal(time_histogram_le_ns(QUEUE_BUCKETS - 2), 1ull << 31);
	assert_true(time_histogram_le_ns(QUEUE_BUCKETS - 1) == UINT64_MAX);
}

static void test_percentiles(void **state)
{
	const uint64_t none[QUEUE_BUCKETS] = {};
	const uint64_t counts[QUEUE_BUCKETS] = { [0] = 90, [4] = 9, [QUEUE_BUCKETS - 1] = 1 };

	assert_int_equal(time_histogram_percentile_ns(none, 50), 0);
	assert_int_equal(time_histogram_count(counts), 100);
	assert_int_equal(time_histogram_percentile_ns(counts, 90), 1024);
	assert_int_equal(time_histogram_percentile_ns(counts, 91), 4096);
	assert_int_equal(time_histogram_percentile_ns(counts, 99), 4096);
	assert_true(time_histogram_percentile_ns(counts, 100) == UINT64_MAX);
}

/* More elements have the same bounds, and more of them; each time is in the first that has it. */
static void test_number(void **state)
{
	uint64_t counts[LOCK_BUCKETS] = { [0] = 1, [LOCK_BUCKETS - 2] = 8, [LOCK_BUCKETS - 1] = 1 };

	for (unsigned int i = 0; i < QUEUE_BUCKETS - 1; i++)
		assert_int_equal(time_histogram_le_of(i, LOCK_BUCKETS), time_histogram_le_ns(i));
	assert_int_equal(time_histogram_le_of(LOCK_BUCKETS - 2, LOCK_BUCKETS), 1ull << 37);
	assert_int_equal(time_histogram_percentile_of(counts, LOCK_BUCKETS, 90), 1ull << 37);
	assert_true(time_histogram_percentile_of(counts, LOCK_BUCKETS, 91) == UINT64_MAX);
	assert_int_equal(time_histogram_element_of(0, LOCK_BUCKETS), 0);
	assert_int_equal(time_histogram_element_of(1024, LOCK_BUCKETS), 0);
	assert_int_equal(time_histogram_element_of(1025, LOCK_BUCKETS), 1);
	assert_int_equal(time_histogram_element_of(1ull << 37, LOCK_BUCKETS), LOCK_BUCKETS - 2);
	assert_int_equal(time_histogram_element_of(UINT64_MAX, LOCK_BUCKETS), LOCK_BUCKETS - 1);
	assert_int_equal(time_histogram_element_of(1ull << 37, QUEUE_BUCKETS), QUEUE_BUCKETS - 1);
}

/* How the line looks is tested with those that write one: queue_histogram_test.c. */
UNIT_TESTS(time_histogram)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
