/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <string.h>

#include "consumer/signals/pool_name.h"

static void assert_name(const char *comm, const char *expected)
{
	char name[COMM_BYTES];

	memset(name, 'x', sizeof(name));
	pool_name_of(comm, name);
	assert_string_equal(name, expected);
	/* The rest is NUL: names are compared as bytes. */
	for (size_t i = strlen(expected); i < sizeof(name); i++)
		assert_int_equal(name[i], 0);
}

static void test_names(void **state)
{
	assert_name("worker-17", "worker-");
	assert_name("io_2_read3", "io__read");
	assert_name("4711", "");
	assert_name("", "");
	assert_name("fifteen_letters", "fifteen_letters");
}

UNIT_TESTS(pool_name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
