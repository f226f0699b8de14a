/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side counts a time in the same element as the consumer. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/runner/unit.h"

#include "bpf/maps/time_bucket.h"
#include "consumer/signals/time_histogram.h"

static void check_time(uint64_t ns)
{
	assert_int_equal(time_bucket(ns), time_histogram_element_of(ns, QUEUE_BUCKETS));
	assert_int_equal(time_bucket_of(ns, LOCK_BUCKETS),
			 time_histogram_element_of(ns, LOCK_BUCKETS));
}

static void test_bounds(void **state)
{
	check_time(0);
	check_time(1);
	check_time(UINT64_MAX);
	for (unsigned int i = 0; i < LOCK_BUCKETS - 1; i++) {
		uint64_t le_ns = time_histogram_le_of(i, LOCK_BUCKETS);

		check_time(le_ns - 1);
		check_time(le_ns);
		check_time(le_ns + 1);
	}
}

static void test_any(void **state)
{
	srandom(31);
	for (int i = 0; i < 200000; i++)
		check_time(((uint64_t)random() << 33 ^ (uint64_t)random()) >> random() % 64);
}

UNIT_TESTS(time_bucket)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
