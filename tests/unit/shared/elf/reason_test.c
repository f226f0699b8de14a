/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <string.h>

#include "shared/elf/reason.h"

static void test_words(void **state)
{
	for (enum reason i = REASON_NONE + 1; i < REASON_COUNT_; i++) {
		const char *word = reason_word(i);

		assert_int_equal(strspn(word, "abcdefghijklmnopqrstuvwxyz_"), strlen(word));
		assert_non_null(reason_help(word));
		for (enum reason j = REASON_NONE + 1; j < i; j++)
			assert_string_not_equal(reason_word(j), word);
	}
	assert_null(reason_word(REASON_NONE));
	assert_null(reason_help("unheard_of"));
	assert_true(reason_passes(REASON_NO_PERMISSION));
	assert_false(reason_passes(REASON_NOT_ELF));
}

static void test_of_elf(void **state)
{
	assert_int_equal(reason_of_elf(-ENOEXEC), REASON_NOT_ELF);
	assert_int_equal(reason_of_elf(-EBADMSG), REASON_BAD_ELF);
	assert_int_equal(reason_of_elf(-EFBIG), REASON_TOO_LARGE);
	assert_int_equal(reason_of_elf(-ENOMEM), REASON_NO_MEMORY);
	assert_int_equal(reason_of_elf(-EIO), REASON_READ_ERROR);
}

UNIT_TESTS(reason)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_of_elf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
