/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <stdio.h>
#include <string.h>

#include "ctl/view/hot.h"
#include "shared/tools/macro.h"

static struct store store;
static struct tree tree;

static int setup(void **state)
{
	if (store_init(&store, 8u << 20) < 0)
		return -1;
	return tree_init(&tree, &store.budget);
}

static int teardown(void **state)
{
	tree_done(&tree);
	store_done(&store);
	return 0;
}

static void add(uint64_t value, unsigned int column, const struct tree_step *path, uint32_t n)
{
	const struct tree_value what = { .value = value, .column = column };

	assert_int_equal(tree_add(&tree, path, n, &what), 0);
}

/* Labels far apart, as where thousands of sessions have their own: only those of the tree count. */
static void test_totals(void **state)
{
	const struct tree_step by = { 9, TREE_BY }, main_ = { 1000000, STORE_USER },
			       leaf = { 7, STORE_USER };
	const struct tree_step deep[] = { by, main_, leaf, main_, leaf };
	struct hot hot;

	add(3, 1, deep, ARRAY_SIZE(deep));
	add(5, 0, deep, 2);
	assert_int_equal(hot_init(&hot, &tree, 1), 0);
	assert_int_equal(hot.count, 2);
	assert_int_equal(hot.functions[0].label, 7);
	assert_int_equal(hot.functions[0].self[1], 3);
	assert_int_equal(hot.functions[0].total[1], 3); /* once, although it stands there twice */
	assert_int_equal(hot.functions[1].label, 1000000);
	assert_int_equal(hot.functions[1].self[0], 5);
	assert_int_equal(hot.functions[1].total[0], 5);
	assert_int_equal(hot.functions[1].total[1], 3);
	hot_done(&hot);
}

/* One label in the kernel and outside is two functions; what --by puts there is none. */
static void test_kinds(void **state)
{
	const struct tree_step user = { 1, STORE_USER }, kernel = { 1, STORE_KERNEL },
			       by = { 1, TREE_BY };
	struct hot hot;

	add(1, 1, &user, 1);
	add(2, 1, &kernel, 1);
	add(4, 1, &by, 1);
	assert_int_equal(hot_init(&hot, &tree, 1), 0);
	assert_int_equal(hot.count, 2);
	assert_int_equal(hot.functions[0].kind, STORE_KERNEL);
	assert_int_equal(hot.functions[0].self[1], 2);
	assert_int_equal(hot.functions[1].self[1], 1);
	hot_done(&hot);
}

static void test_empty(void **state)
{
	struct hot hot;

	assert_int_equal(hot_init(&hot, &tree, 1), 0);
	assert_int_equal(hot.count, 0);
	hot_done(&hot);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(hot)
{
	const struct CMUnitTest tests[] = { TEST(totals), TEST(kinds), TEST(empty) };

	return cmocka_run_group_tests_name("hot", tests, NULL, NULL);
}
