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

/* Of thousands of root's cgroups in one directory each is looked up, and the way to them once. */
static void test_way_is_looked_up_once(void **state)
{
	_cleanup_(delegated_done) struct delegated_list list = {};
	_cleanup_(delegated_done) struct delegated_list later = {};

	if (geteuid() != 0)
		skip();
	make("/a");
	make("/a/b");
	make("/a/b/x");
	make("/a/b/y");
	make("/a/bb");
	assert_int_equal(delegated_find(&list, &cgroups, "/a/b/x"), 0);
	assert_string_equal(list.roots, "/a/b");
	give("/a", 61234);
	give("/a/b/y", 61235);
	assert_int_equal(delegated_find(&list, &cgroups, "/a/b/x"), 0);
	assert_int_equal(delegated_find(&list, &cgroups, "/a/b/gone"), 0);
	assert_int_equal(delegated_find(&list, &cgroups, "/a/b/y"), 1);
	assert_string_equal(list.items[0].path, "/a/b/y");
	/* The way of one that only begins alike is another one. */
	assert_int_equal(delegated_find(&list, &cgroups, "/a/bb"), 2);
	assert_string_equal(list.items[1].path, "/a");
	assert_int_equal(delegated_find(&later, &cgroups, "/a/b/x"), 1);
}

static void open_to_all(const char *path)
{
	char name[256];

	snprintf(name, sizeof(name), "%s%s", mount, path);
	assert_int_equal(chmod(name, 0777), 0);
}

/*
 * The way to a removed cgroup is known as far as it exists; root's that others may write to ends
 * it.
 */
static void test_way_that_ends(void **state)
{
	_cleanup_(delegated_done) struct delegated_list list = {};

	if (geteuid() != 0)
		skip();
	make("/a");
	make("/a/b");
	assert_int_equal(delegated_find(&list, &cgroups, "/a/gone/x"), 0);
	assert_null(list.roots);
	assert_int_equal(delegated_find(&list, &cgroups, "/a/gone"), 0);
	assert_string_equal(list.roots, "/a");
	assert_int_equal(delegated_find(&list, &cgroups, "/"), 0);
	assert_string_equal(list.roots, "/a");
	open_to_all("/a/b");
	make("/a/b/u");
	give("/a/b/u", 61234);
	assert_int_equal(delegated_find(&list, &cgroups, "/a/b/u"), 0);
	assert_string_equal(list.roots, "/a");
}

UNIT_TESTS(delegated)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_first_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_way_is_looked_up_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_way_that_ends, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
