/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <string.h>

#include "consumer/unwind/cfi/cfi_loss.h"

static void test_words(void **state)
{
	assert_null(cfi_loss_word(CFI_LOSS_NONE));
	for (int i = CFI_LOSS_NONE + 1; i < CFI_LOSS_COUNT_; i++) {
		assert_true(strlen(cfi_loss_word((enum cfi_loss)i)) > 0);
		for (int j = CFI_LOSS_NONE + 1; j < i; j++)
			assert_string_not_equal(cfi_loss_word((enum cfi_loss)i),
						cfi_loss_word((enum cfi_loss)j));
	}
	assert_string_equal(cfi_loss_word(CFI_LOSS_DEPTH), "depth");
}

UNIT_TESTS(cfi_loss)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_words) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
