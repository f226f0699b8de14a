/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdint.h>
#include <stdlib.h>

#include "shared/tools/array.h"

static void test_grow(void **state)
{
	uint32_t *items = NULL;
	size_t space = 0, moves = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		size_t before = space;

		assert_int_equal(array_reserve(&items, &space, i + 1, sizeof(*items)), 0);
		assert_true(space > i);
		moves += space != before;
		items[i] = i;
	}
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(items[i], i);
	assert_in_range(moves, 1, 10);
	/* All at once: no more than is asked for. */
	assert_int_equal(array_reserve(&items, &space, 5000, sizeof(*items)), 0);
	assert_int_equal(space, 5000);
	free(items);
}

static int compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void test_sort_and_find(void **state)
{
	uint32_t items[] = { 5, 1, 9, 3, 7 }, key = 7;

	array_sort(items, 5, sizeof(*items), compare);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(items[i], 2 * i + 1);
	assert_ptr_equal(array_find(&key, items, 5, sizeof(*items), compare), &items[3]);
	key = 4;
	assert_null(array_find(&key, items, 5, sizeof(*items), compare));
	array_sort(NULL, 0, sizeof(*items), compare);
	assert_null(array_find(&key, NULL, 0, sizeof(*items), compare));
}

/* Every bound of every range, also of an empty one. */
static void test_lower_bound(void **state)
{
	for (size_t from = 0; from < 9; from++)
		for (size_t to = from; to < 9; to++)
			for (size_t bound = from; bound <= to; bound++)
				assert_int_equal(LOWER_BOUND(i, from, to, i < bound), bound);
	assert_int_equal(LOWER_BOUND(i, 0, SIZE_MAX, i < SIZE_MAX - 1), SIZE_MAX - 1);
}

UNIT_TESTS(array)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_sort_and_find),
		cmocka_unit_test(test_lower_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
