/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <errno.h>

#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

static void takes_whole_numbers(void **state)
{
	uint64_t n = 7;

	assert_int_equal(parse_u64("0", 0, 0, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(parse_u64("97", 1, 1000, &n), 0);
	assert_int_equal(n, 97);
	assert_int_equal(parse_u64("00097", 1, 1000, &n), 0);
	assert_int_equal(n, 97);
	assert_int_equal(parse_u64("18446744073709551615", 0, UINT64_MAX, &n), 0);
	assert_true(n == UINT64_MAX);
}

static void refuses_other_text(void **state)
{
	static const char *const texts[] = {
		"", " 1", "1 ", "+1", "-1", "1.0", "0x1", "1\n", "a", "1e3", "99999999999999999999x"
	};
	uint64_t n = 7;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(parse_u64(texts[i], 0, UINT64_MAX, &n), -EINVAL);
	assert_int_equal(n, 7);
}

static void holds_the_walls(void **state)
{
	uint64_t n = 7;

	assert_int_equal(parse_u64("4", 5, 10, &n), -ERANGE);
	assert_int_equal(parse_u64("11", 5, 10, &n), -ERANGE);
	assert_int_equal(parse_u64("18446744073709551616", 0, UINT64_MAX, &n), -ERANGE);
	assert_int_equal(parse_u64("184467440737095516150", 0, UINT64_MAX, &n), -ERANGE);
	assert_int_equal(n, 7);
}

UNIT_TESTS(parse)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_whole_numbers),
		cmocka_unit_test(refuses_other_text),
		cmocka_unit_test(holds_the_walls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
