/* SPDX-License-Identifier: BSD-2-Clause */
/* On a tree of directories. What users own in it: cgroup_lookup_test.c. */
#include "consumer/cgroup/cgroups_walk.h"

#include <errno.h>

#include "tests/unit/consumer/testing/cgroups_testing.h"

static int count_one(void *context, const char *path, uint64_t id)
{
	unsigned int *count = context;

	(*count)++;
	return 0;
}

/*
 * A walk in parts, each of one entry, meets the same as a whole one; a cgroup made next to its
 * place may be met, and one removed before its turn is not.
 */
static void test_walk_in_parts(void **state)
{
	unsigned int count = 0, parts = 0, gone = 0;
	struct cgroups_walk *walk;
	char gone_path[128];
	uint64_t a;

	a = make("/a");
	make("/a/b");
	make("/c");
	assert_int_equal(cgroups_walk_new(&cgroups, count_one, &count, &walk), 0);
	assert_int_equal(count, 1);
	while (cgroups_walk_step(walk, 0) > 0)
		parts++;
	assert_int_equal(cgroups.walk_error, 0);
	cgroups_walk_free(walk);
	assert_int_equal(count, 4);
	assert_true(parts >= 3);
	assert_int_equal(cgroups_walk_new(&cgroups, count_one, &gone, &walk), 0);
	snprintf(gone_path, sizeof(gone_path), "%s/a/b", mount);
	assert_int_equal(rmdir(gone_path), 0);
	while (cgroups_walk_step(walk, 0) > 0)
		continue;
	cgroups_walk_free(walk);
	assert_int_equal(gone, 3);
	/* One that is given up leaves nothing behind. */
	assert_int_equal(cgroups_walk_new(&cgroups, count_one, &gone, &walk), 0);
	cgroups_walk_free(walk);
	assert_false(cgroups_knows(&cgroups, a));
	cgroups_learn(&cgroups, a, "/a");
	assert_true(cgroups_knows(&cgroups, a));
}

static void set_mode(const char *path, mode_t mode)
{
	char name[256];

	snprintf(name, sizeof(name), "%s%s", mount, path);
	assert_int_equal(chmod(name, mode), 0);
}

/*
 * A walk's error and its left-out directories are kept; a failed walk keeps the earlier knowledge.
 */
static void test_walk_left(void **state)
{
	if (geteuid() != 0)
		skip();
	set_mode("", 0755);
	make("/closed");
	set_mode("/closed", 0700);
	assert_int_equal(seteuid(65534), 0);
	assert_null(look_up(0x7fffffffffff));
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(cgroups.left.unread.count, 1);
	assert_string_equal(cgroups.left.unread.example, "/closed");
	assert_int_equal(cgroups.walk_error, 0);
	set_mode("", 0700);
	cgroups_look_again(&cgroups);
	assert_int_equal(seteuid(65534), 0);
	assert_null(look_up(0x7fffffffffff));
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(cgroups.left.unread.count, 1);
	assert_int_equal(cgroups.walk_error, -EACCES);
}

UNIT_TESTS(cgroups_walk)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_walk_in_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_walk_left, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
