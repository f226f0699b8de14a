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

/* Of a cgroup that is found only after the session ended, the user is found too. */
static void test_named_later(void **state)
{
	_cleanup_free_ char *path = NULL;
	const char *why = NULL;
	uint32_t uid = 0;
	uint64_t id;

	if (geteuid() != 0)
		skip();
	make("/u");
	give("/u", 61234);
	id = make("/u/young");
	delegated_name(NULL, &cgroups, id, &path, &why, &uid);
	assert_null(path);
	assert_non_null(why);
	cgroups_learn(&cgroups, id, "/u/young");
	delegated_name(NULL, &cgroups, id, &path, &why, &uid);
	assert_string_equal(path, "/u/young");
	assert_null(why);
	assert_int_equal(uid, 61234);
}

UNIT_TESTS(delegated)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_first_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_named_later, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
