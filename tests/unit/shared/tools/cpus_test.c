/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <errno.h>
#include <stdlib.h>

#include "shared/tools/cpus.h"
#include "shared/tools/macro.h"

static void lists(void **state)
{
	uint32_t *cpus = NULL;
	size_t n = 0;

	assert_int_equal(cpus_parse("0-3,8,10-11\n", &cpus, &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(cpus[0], 0);
	assert_int_equal(cpus[4], 8);
	assert_int_equal(cpus[6], 11);
	free(cpus);
	assert_int_equal(cpus_parse("0", &cpus, &n), 0);
	assert_int_equal(n, 1);
	free(cpus);
	assert_int_equal(cpus_parse("0-8191\n", &cpus, &n), 0);
	assert_int_equal(n, CPUS_MAX);
	free(cpus);
}

static void faulty_lists(void **state)
{
	static const struct {
		const char *text;
		int error;
	} faulty[] = {
		{ "", -EINVAL },       { "\n", -EINVAL },	   { "a", -EINVAL },
		{ "1-", -EINVAL },     { "-1", -EINVAL },	   { "3-1", -EINVAL },
		{ "1,", -EINVAL },     { "1,,2", -EINVAL },	   { "2,1", -EINVAL },
		{ "1,1", -EINVAL },    { "0-3,2", -EINVAL },	   { "1 2", -EINVAL },
		{ "0-8192", -ERANGE }, { "99999999999", -ERANGE }, { "0-1\n\n", -EINVAL },
		{ "0x1", -EINVAL },
	};
	uint32_t *cpus = NULL;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(faulty); i++)
		assert_int_equal(cpus_parse(faulty[i].text, &cpus, &n), faulty[i].error);
	assert_null(cpus);
}

static void here(void **state)
{
	uint32_t *cpus = NULL, possible = 0;
	size_t n = 0;

	assert_int_equal(cpus_online(&cpus, &n), 0);
	assert_int_equal(cpus_possible(&possible), 0);
	assert_true(n >= 1 && possible >= n);
	free(cpus);
}

UNIT_TESTS(cpus)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(faulty_lists),
		cmocka_unit_test(here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
