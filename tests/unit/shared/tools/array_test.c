/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
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

/* Without memory the array stays as it is. */
static void test_no_memory(void **state)
{
	uint64_t *items = NULL;
	size_t space = 0;

	assert_int_equal(array_reserve(&items, &space, 1, sizeof(*items)), 0);
	items[0] = 7;
	assert_int_equal(array_reserve(&items, &space, SIZE_MAX / 4, sizeof(*items)), -ENOMEM);
	assert_int_equal(items[0], 7);
	assert_true(space >= 1 && space < 1000);
	free(items);
}

UNIT_TESTS(array)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
