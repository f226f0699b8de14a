/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <string.h>

#include "shared/tools/environment.h"

static void test_remaining_variables(void **state)
{
	char *all[] = { "SECRET_TOKEN=x",
			"LANG=C.UTF-8",
			"PATHS=no",
			"PATH=/bin",
			"PATH=/second",
			"LD_PRELOAD=/tmp/x.so",
			"LISTEN_FDS=1",
			"LISTEN_PID=7",
			"TERM=xterm",
			"SSH_AUTH_SOCK=/tmp/a",
			"NOTIFY_SOCKET=/n",
			"",
			"LANG",
			NULL };
	char *want[] = { "PATH=/bin", "LANG=C.UTF-8", "TERM=xterm", "LISTEN_PID=7",
			 "LISTEN_FDS=1" };
	char *small[ENVIRONMENT_ROOM];

	assert_ptr_equal(environment_small(all, small), small);
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		assert_string_equal(small[i], want[i]);
	assert_null(small[sizeof(want) / sizeof(*want)]);
}

static void test_of_nothing(void **state)
{
	char *none[] = { NULL }, *small[ENVIRONMENT_ROOM];

	assert_null(*environment_small(none, small));
	assert_null(*environment_small(NULL, small));
}

UNIT_TESTS(environment)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remaining_variables),
		cmocka_unit_test(test_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
