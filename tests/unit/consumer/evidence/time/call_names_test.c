/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of system calls against the headers that this is compiled with. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <sys/syscall.h>

#include "consumer/evidence/time/call_names.h"
#include "shared/abi/abi.h"

static void test_names(void **state)
{
	assert_string_equal(call_names_get(SYS_read), "read");
	assert_string_equal(call_names_get(SYS_futex), "futex");
	assert_string_equal(call_names_get(SYS_clock_nanosleep), "clock_nanosleep");
	assert_string_equal(call_names_get(SYS_fsync), "fsync");
	assert_string_equal(call_names_get(SYS_wait4), "wait4");
	assert_string_equal(call_names_get(SYS_io_uring_enter), "io_uring_enter");
	assert_string_equal(call_names_get(SYS_openat2), "openat2");
	assert_string_equal(call_names_get(SYS_futex_waitv), "futex_waitv");
	assert_null(call_names_get(100000));
	assert_null(call_names_get(ACCOUNT_CALL_NONE));
	assert_null(call_names_get(ACCOUNT_CALL_COMPAT));
}

UNIT_TESTS(call_names)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
