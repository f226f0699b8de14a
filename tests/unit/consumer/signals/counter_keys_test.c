/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/counter_keys.h"

#include <stddef.h>
#include <stdint.h>

#include "tests/unit/runner/unit.h"

#define MANY 5000

static void test_find(void **state)
{
	static uint64_t all[MANY];
	struct counter_keys k = {};
	uint64_t none = MANY * 2;

	for (uint64_t i = 0; i < MANY; i++)
		all[i] = (i * 7919) % MANY * 3;
	assert_int_equal(counter_keys_sort(all, MANY, sizeof(*all), &k), 0);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(counter_keys_find(&k, &all[i]), i);
	assert_ptr_equal(counter_keys_value(&k, &all[7], all, sizeof(*all), &none), &all[7]);
	none = 1;
	assert_int_equal(counter_keys_find(&k, &none), MANY);
	assert_ptr_equal(counter_keys_value(&k, &none, all, sizeof(*all), &none), &none);
	counter_keys_done(&k);
	assert_int_equal(counter_keys_sort(NULL, 0, sizeof(*all), &k), 0);
	assert_int_equal(counter_keys_find(&k, &none), 0);
	counter_keys_done(&k);
}

static void test_growth(void **state)
{
	assert_int_equal(counter_keys_growth(5, 7), 2);
	assert_int_equal(counter_keys_growth(7, 7), 0);
	assert_int_equal(counter_keys_growth(7, 5), 5);
}

UNIT_TESTS(counter_keys)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
