/* SPDX-License-Identifier: BSD-2-Clause */
/* Which directory of a user a cgroup is in. */
#include "tests/unit/consumer/testing/cgroups_testing.h"

#include "consumer/cgroup/delegated.h"
#include "shared/tools/cleanup.h"

static void test_first_directory(void **state)
{
	_cleanup_(delegated_done) struct delegated_list list = {};
	uint64_t id;

	if (geteuid() != 0)
		skip();
	make("/a");
	id = make("/a/u");
	make("/a/u/x");
	make("/a/v");
	make("/b");
	give("/a/u", 61234);
	give("/a/u/x", 61235);
	give("/a/v", 61235);
	assert_int_equal(delegated_find(&list, &cgroups, "/b"), 0);
	assert_int_equal(delegated_find(&list, &cgroups, "/"), 0);
	assert_int_equal(delegated_find(&list, &cgroups, "/a/u/x"), 1);
	assert_string_equal(list.items[0].path, "/a/u");
	assert_int_equal(list.items[0].uid, 61234);
	assert_int_equal(list.items[0].id, id);
	/* One that is gone is in it too, and one that begins alike is not. */
	assert_int_equal(delegated_find(&list, &cgroups, "/a/u/gone"), 1);
	assert_int_equal(delegated_find(&list, &cgroups, "/a/u"), 1);
	assert_int_equal(delegated_find(&list, &cgroups, "/a/v"), 2);
	assert_int_equal(delegated_find(&list, &cgroups, "/a/uu"), 0);
	assert_int_equal(delegated_find(&list, &cgroups, "/../a/v"), 0);
}

UNIT_TESTS(delegated)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_first_directory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
