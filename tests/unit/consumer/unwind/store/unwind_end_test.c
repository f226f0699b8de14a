/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <string.h>

#include "consumer/unwind/store/unwind_end.h"

static void test_words(void **state)
{
	assert_null(unwind_end_word(UNWIND_END_NONE));
	for (int i = UNWIND_END_NONE + 1; i < UNWIND_END_COUNT_; i++) {
		assert_true(strlen(unwind_end_word((enum unwind_end)i)) > 0);
		assert_true(strlen(unwind_end_help((enum unwind_end)i)) > 0);
		for (int j = UNWIND_END_NONE + 1; j < i; j++)
			assert_string_not_equal(unwind_end_word((enum unwind_end)i),
						unwind_end_word((enum unwind_end)j));
	}
	assert_string_equal(unwind_end_word(UNWIND_END_DEPTH), "depth");
}

UNIT_TESTS(unwind_end)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_words) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
