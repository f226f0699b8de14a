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

UNIT_TESTS(array)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
