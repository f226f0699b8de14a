/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <string.h>
#include <sys/prctl.h>

#include "ctl/client/process_names.h"

/* This process is among those of /proc, by the name that it has now. */
static void finds_this_process(void **state)
{
	struct process_names names;
	size_t own = 0;

	prctl(PR_SET_NAME, "zq name-of-15-b");
	assert_int_equal(process_names_read(&names), 0);
	for (size_t i = 0; i < names.count; i++)
		own += !strcmp(names.items[i], "zq name-of-15-b");
	assert_int_equal(own, 1);
	assert_true(process_names_has(&names, "zq name-of-15-b", false));
	assert_true(process_names_has(&names, "zq name", true));
	assert_false(process_names_has(&names, "zq name", false));
	assert_false(process_names_has(&names, "zq-name", true));
	assert_string_equal(process_names_near(&names, "zq name-of-15-c"), "zq name-of-15-b");
	assert_string_equal(process_names_near(&names, "zq na"), "zq name-of-15-b");
	assert_null(process_names_near(&names, "qqqqqqqqqqqqqqq"));
	process_names_done(&names);
	assert_int_equal(names.count, 0);
}

UNIT_TESTS(process_names)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_this_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
