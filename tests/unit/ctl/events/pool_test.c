/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/events/pool.h"

static struct pool_budget budget;
static struct pool pool;

static int setup(void **state)
{
	budget = (struct pool_budget){ .max_bytes = 64u << 20 };
	pool_seed();
	pool_init(&pool, &budget);
	return 0;
}

static int teardown(void **state)
{
	pool_done(&pool);
	return budget.used_bytes != 0;
}

static uint32_t put(const char *text)
{
	uint32_t number;

	assert_int_equal(pool_put(&pool, text, strlen(text), &number), 0);
	return number;
}

static void test_same_bytes_same_number(void **state)
{
	uint32_t number;

	assert_int_equal(put("a"), 0);
	assert_int_equal(put("b"), 1);
	assert_int_equal(put(""), 2);
	assert_int_equal(put("a"), 0);
	assert_int_equal(put(""), 2);
	assert_string_equal(pool_text(&pool, 1), "b");
	assert_int_equal(pool_find(&pool, "b", 1, &number), 0);
	assert_int_equal(number, 1);
	assert_int_equal(pool_find(&pool, "c", 1, &number), -ENOENT);
}

static void test_many(void **state)
{
	char text[64];
	size_t bytes;

	for (int i = 0; i < 100000; i++) {
		snprintf(text, sizeof(text), "%.*s%d", i % 40,
			 "........................................", i);
		assert_int_equal(put(text), i);
	}
	for (int i = 0; i < 100000; i++) {
		snprintf(text, sizeof(text), "%.*s%d", i % 40,
			 "........................................", i);
		assert_int_equal(put(text), i);
		assert_string_equal(pool_get(&pool, (uint32_t)i, &bytes), text);
		assert_int_equal(bytes, strlen(text));
		assert_int_equal((uintptr_t)pool_get(&pool, (uint32_t)i, &bytes) % 8, 0);
	}
}

static void test_binary_keys(void **state)
{
	const uint64_t a[] = { 0, 0, 1 }, b[] = { 0, 1, 0 };
	uint32_t x, y;

	assert_int_equal(pool_put(&pool, a, sizeof(a), &x), 0);
	assert_int_equal(pool_put(&pool, b, sizeof(b), &y), 0);
	assert_int_not_equal(x, y);
	/* A beginning of it is another thing. */
	assert_int_equal(pool_put(&pool, a, 16, &y), 0);
	assert_int_equal(y, 2);
}

static void test_budget_is_kept(void **state)
{
	char text[1024] = { 0 };
	uint32_t number = 0, n;
	int r = 0;

	budget.max_bytes = 1u << 20;
	for (n = 0; r == 0; n++) {
		memcpy(text, &n, sizeof(n));
		r = pool_put(&pool, text, sizeof(text), &number);
		assert_true(budget.used_bytes <= budget.max_bytes);
	}
	assert_int_equal(r, -ENOSPC);
	assert_true(n > 100);
	/* What is in it stays, and is found. */
	memset(text, 0, sizeof(text));
	assert_int_equal(pool_put(&pool, text, sizeof(text), &number), 0);
	assert_int_equal(number, 0);
}

static void test_arrays_grow_zeroed(void **state)
{
	uint64_t *array = NULL;
	uint32_t space = 0;

	assert_int_equal(pool_grow(&budget, (void **)&array, &space, 1, sizeof(*array)), 0);
	for (uint32_t i = 0; i < space; i++)
		array[i]--;
	assert_int_equal(pool_grow(&budget, (void **)&array, &space, 100000, sizeof(*array)), 0);
	assert_true(space >= 100000 && array[99999] == 0 && array[0] == UINT64_MAX);
	assert_int_equal(pool_grow(&budget, (void **)&array, &space, 1u << 30, sizeof(*array)),
			 -ENOSPC);
	assert_true(array[0] == UINT64_MAX);
	budget.used_bytes -= space * sizeof(*array);
	free(array);
}

UNIT_TESTS(pool)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(same_bytes_same_number), TEST(many), TEST(binary_keys), TEST(budget_is_kept),
		TEST(arrays_grow_zeroed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
