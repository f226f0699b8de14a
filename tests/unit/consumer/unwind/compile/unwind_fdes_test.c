/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "consumer/unwind/compile/unwind_compile.h"
#include "consumer/unwind/compile/unwind_fdes.h"

static void test_sort(void **state)
{
	struct unwind_fdes f = { 0 };

	srandom(1);
	for (uint32_t i = 0; i < 5000; i++) {
		uint32_t start = (uint32_t)random() % UNWIND_SPAN_MAX;

		if (i % 3 == 0)
			start %= 100; /* many that are equal */
		assert_int_equal(
			unwind_fdes_push(&f, (struct unwind_fde){ .start = start, .at = i }), 0);
	}
	assert_int_equal(unwind_fdes_sort(&f), 0);
	assert_int_equal(f.count, 5000);
	for (size_t i = 1; i < f.count; i++) {
		const struct unwind_fde *a = &f.items[i - 1], *b = &f.items[i];

		assert_true(a->start < b->start || (a->start == b->start && a->at < b->at));
	}
	assert_int_equal(unwind_fdes_push(&f, (struct unwind_fde){ 0 }), 0);
	unwind_fdes_done(&f);
}

static void test_sorted_stays(void **state)
{
	struct unwind_fdes f = { 0 };
	struct unwind_fde *before;

	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(unwind_fdes_push(&f, (struct unwind_fde){ .start = i / 2 }), 0);
	before = f.items;
	assert_int_equal(unwind_fdes_sort(&f), 0);
	assert_ptr_equal(f.items, before);
	unwind_fdes_done(&f);
}

static void test_wall(void **state)
{
	struct unwind_fdes f = { 0 };

	for (uint32_t i = 0; i < UNWIND_ENTRIES_MAX; i++)
		if (unwind_fdes_push(&f, (struct unwind_fde){ 0 }) != 0)
			fail();
	assert_int_equal(unwind_fdes_push(&f, (struct unwind_fde){ 0 }), -E2BIG);
	unwind_fdes_done(&f);
}

UNIT_TESTS(unwind_fdes)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_sorted_stays),
		cmocka_unit_test(test_wall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
