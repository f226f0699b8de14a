/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "consumer/unwind/store/unwind_pool.h"

#define SIZE  200
#define HOLDS 40

static void test_whole(void **state)
{
	struct unwind_pool p;
	uint32_t a, b;

	assert_int_equal(unwind_pool_init(&p, 10), 0);
	assert_int_equal(unwind_pool_take(&p, 11, &a), -ENOSPC);
	assert_int_equal(unwind_pool_take(&p, 4, &a), 0);
	assert_int_equal(unwind_pool_take(&p, 6, &b), 0);
	assert_int_equal(a, 0);
	assert_int_equal(b, 4);
	assert_int_equal(p.used, 10);
	assert_int_equal(unwind_pool_take(&p, 1, &a), -ENOSPC);
	assert_int_equal(unwind_pool_give(&p, 0, 4), 0);
	assert_int_equal(unwind_pool_give(&p, 4, 6), 0);
	assert_int_equal(p.used, 0);
	assert_int_equal(unwind_pool_take(&p, 10, &a), 0);
	unwind_pool_done(&p);
}

/* Against a map of owners: nothing twice, nothing lost, neighbours joined. */
static void test_random(void **state)
{
	struct unwind_extent held[HOLDS] = { { 0 } };
	bool taken[SIZE] = { false };
	struct unwind_pool p;

	srandom(3);
	assert_int_equal(unwind_pool_init(&p, SIZE), 0);
	for (int i = 0; i < 20000; i++) {
		struct unwind_extent *e = &held[random() % HOLDS];
		bool give = e->count > 0;

		if (!give) {
			e->count = (uint32_t)random() % 20 + 1;
			if (unwind_pool_take(&p, e->count, &e->first) < 0) {
				e->count = 0;
				continue;
			}
		} else {
			assert_int_equal(unwind_pool_give(&p, e->first, e->count), 0);
		}
		for (uint32_t k = 0; k < e->count; k++) {
			assert_in_range(e->first + k, 0, SIZE - 1);
			assert_int_equal(taken[e->first + k], give);
			taken[e->first + k] = !give;
		}
		if (give)
			e->count = 0;
		for (size_t k = 1; k < p.count; k++)
			assert_true(p.free[k - 1].first + p.free[k - 1].count < p.free[k].first);
	}
	for (int i = 0; i < HOLDS; i++)
		if (held[i].count)
			assert_int_equal(unwind_pool_give(&p, held[i].first, held[i].count), 0);
	assert_int_equal(p.count, 1);
	assert_int_equal(p.free[0].count, SIZE);
	unwind_pool_done(&p);
}

UNIT_TESTS(unwind_pool)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
