/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of the cgroups of one name is a unit's, in trees of plain folders. */
#include "tests/unit/runner/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/client/unit_cgroup.h"

#define USER 1234

static char top[64];

static int setup(void **state)
{
	snprintf(top, sizeof(top), "/tmp/unit_cgroup_test.XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command); /* NOLINT: the test's own words */
}

/* Makes the folders of a path; the last one is of this user. */
static void make(const char *path, uid_t owner)
{
	char folder[256];

	for (const char *at = strchr(path + 1, '/');; at = strchr(at + 1, '/')) {
		size_t bytes = at ? (size_t)(at - path) : strlen(path);

		snprintf(folder, sizeof(folder), "%s%.*s", top, (int)bytes, path);
		mkdir(folder, 0755);
		if (!at)
			break;
	}
	if (geteuid() == 0)
		assert_int_equal(chown(folder, owner, owner), 0);
}

static void test_the_systems_comes_first(void **state)
{
	struct unit_found found;

	if (geteuid() != 0)
		skip();
	make("/user.slice/delegated", USER);
	make("/user.slice/delegated/nginx.service", 0); /* what he had root make is below his */
	assert_int_equal(unit_cgroup_find(top, "nginx.service", &found), 0);
	assert_string_equal(found.path, "/user.slice/delegated/nginx.service");
	assert_int_equal(found.owner, UNIT_OF_USER);
	assert_int_equal(found.uid, USER);
	assert_true(found.whole);
	make("/system.slice/pod.scope/nginx.service", 0); /* root's of a container */
	assert_int_equal(unit_cgroup_find(top, "nginx.service", &found), 0);
	assert_string_equal(found.path, "/system.slice/pod.scope/nginx.service");
	assert_int_equal(found.owner, UNIT_OF_ROOT);
	make("/system.slice/system-web.slice/nginx.service", 0);
	assert_int_equal(unit_cgroup_find(top, "nginx.service", &found), 0);
	assert_string_equal(found.path, "/system.slice/system-web.slice/nginx.service");
	assert_int_equal(found.owner, UNIT_OF_SYSTEM);
	assert_string_equal(found.other, "");
	make("/system.slice/nginx.service", 0);
	assert_int_equal(unit_cgroup_find(top, "nginx.service", &found), 0);
	assert_int_equal(found.owner, UNIT_OF_SYSTEM);
	assert_string_not_equal(found.other, "");
}

static void test_two_of_a_user(void **state)
{
	struct unit_found found;

	make("/a/shop.service", USER);
	assert_int_equal(unit_cgroup_find(top, "shop.service", &found), 0);
	assert_string_equal(found.path, "/a/shop.service");
	assert_string_equal(found.other, "");
	make("/b/shop.service", USER);
	assert_int_equal(unit_cgroup_find(top, "shop.service", &found), 0);
	assert_string_not_equal(found.other, "");
	assert_string_not_equal(found.other, found.path);
}

static void test_none(void **state)
{
	struct unit_found found;

	make("/system.slice/nginx.service.d", 0);
	assert_int_equal(unit_cgroup_find(top, "nginx.service", &found), 0);
	assert_string_equal(found.path, "");
	assert_true(unit_cgroup_find("/nowhere", "nginx.service", &found) < 0);
}

/* A path below the mount stays; other names of the same folder become it. */
static void test_path(void **state)
{
	static const char *const cases[][2] = {
		{ "/a/b.service", "/a/b.service" },
		{ "/", "/" },
		{ "", "/" },
		{ "a/b.service", "/a/b.service" },
		{ "a/b/", "/a/b" },
		{ "/sys/fs/cgroup/a/b", "/a/b" },
		{ "/sys/fs/cgroup//a/", "/a" },
		{ "/sys/fs/cgroup", "/" },
		{ "/sys/fs/cgroups/a", "/sys/fs/cgroups/a" },
	};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unit_cgroup_path("/sys/fs/cgroup", cases[i][0], path);
		assert_string_equal(path, cases[i][1]);
	}
}

UNIT_TESTS(unit_cgroup)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_systems_comes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_of_a_user, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test(test_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
