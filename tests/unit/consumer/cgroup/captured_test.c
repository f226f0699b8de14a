/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <stdio.h>

#include "consumer/cgroup/captured.h"

/* The cgroup itself, by its id or path, and those below it; not those that only begin alike. */
static void test_holds(void **state)
{
	struct captured c = { 0 };

	assert_false(captured_holds(&c, 7, "/a/b"));
	assert_int_equal(captured_add(&c, 7, "/a/b"), 0);
	assert_true(captured_holds(&c, 7, NULL));
	assert_true(captured_holds(&c, 8, "/a/b"));
	assert_true(captured_holds(&c, 9, "/a/b/c"));
	assert_false(captured_holds(&c, 9, NULL));
	assert_false(captured_holds(&c, 9, "/a/bc"));
	assert_false(captured_holds(&c, 9, "/a"));
}

/* A cgroup that only shares the root with others is not below them. */
static void test_root(void **state)
{
	struct captured c = { 0 };

	assert_int_equal(captured_add(&c, 1, "/"), 0);
	assert_true(captured_holds(&c, 1, "/"));
	assert_false(captured_holds(&c, 2, "/a"));
}

/* Two sessions of one cgroup: it is captured until both have ended. */
static void test_remove(void **state)
{
	static const char first[] = "/a", second[] = { '/', 'a', 0 };
	struct captured c = { 0 };

	assert_int_equal(captured_add(&c, 1, first), 0);
	assert_int_equal(captured_add(&c, 1, second), 0);
	captured_remove(&c, first);
	captured_remove(&c, first);
	assert_true(captured_holds(&c, 1, NULL));
	captured_remove(&c, second);
	assert_false(captured_holds(&c, 1, NULL));
	assert_int_equal(c.count, 0);
}

static void test_full(void **state)
{
	char paths[CAPTURED_MAX + 1][16];
	struct captured c = { 0 };

	for (size_t i = 0; i < CAPTURED_MAX; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/%zu", i);
		assert_int_equal(captured_add(&c, i, paths[i]), 0);
	}
	assert_int_equal(captured_add(&c, CAPTURED_MAX, paths[CAPTURED_MAX]), -ENOSPC);
	captured_remove(&c, paths[3]);
	assert_false(captured_holds(&c, 3, NULL));
	assert_true(captured_holds(&c, CAPTURED_MAX - 1, NULL));
}

UNIT_TESTS(captured)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holds),
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_remove),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
