/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <errno.h>
#include <stdlib.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/idmap.h"

static void empty_table_answers(void **state)
{
	struct idmap m;
	uint64_t id;
	size_t i = 0;

	idmap_init(&m, 10);
	assert_null(idmap_get(&m, 1));
	assert_null(idmap_remove(&m, 1));
	assert_null(idmap_next(&m, &i, &id));
	idmap_done(&m);
}

static void puts_gets_replaces(void **state)
{
	_cleanup_(idmap_done) struct idmap m;
	int a, b;

	idmap_init(&m, 2);
	assert_int_equal(idmap_put(&m, 0, &a), -EINVAL);
	assert_int_equal(idmap_put(&m, 1, NULL), -EINVAL);
	assert_int_equal(idmap_put(&m, 1, &a), 0);
	assert_int_equal(idmap_put(&m, UINT64_MAX, &a), 0);
	assert_int_equal(idmap_put(&m, 3, &a), -ENOSPC);
	assert_int_equal(idmap_put(&m, 1, &b), 0); /* replacing needs no place */
	assert_ptr_equal(idmap_get(&m, 1), &b);
	assert_null(idmap_get(&m, 0));
	assert_int_equal(m.count, 2);
	assert_ptr_equal(idmap_remove(&m, 1), &b);
	assert_null(idmap_remove(&m, 1));
	assert_int_equal(idmap_put(&m, 3, &a), 0);
}

static void a_wall_of_none_holds(void **state)
{
	_cleanup_(idmap_done) struct idmap m;
	int a;

	idmap_init(&m, 0);
	assert_int_equal(idmap_put(&m, 1, &a), -ENOSPC);
}

#define IDS 512

/*
 * Random puts and removes against a plain array: a removal that closes the gap wrongly loses some
 * entry behind it. Few ids, so that every chain of places is met often.
 */
static void agrees_with_a_plain_array(void **state)
{
	_cleanup_(idmap_done) struct idmap m;
	static char values[IDS];
	void *right[IDS] = { NULL };
	size_t count = 0;

	srandom(1);
	idmap_init(&m, IDS);
	for (int step = 0; step < 200000; step++) {
		size_t n = (size_t)random() % IDS;
		uint64_t id =
			(n + 1) * 4096; /* as cgroup ids and addresses: alike in their low bits */

		if (random() % 2) {
			assert_int_equal(idmap_put(&m, id, &values[n]), 0);
			count += !right[n];
			right[n] = &values[n];
		} else {
			assert_ptr_equal(idmap_remove(&m, id), right[n]);
			count -= right[n] != NULL;
			right[n] = NULL;
		}
		n = (size_t)random() % IDS;
		assert_ptr_equal(idmap_get(&m, (n + 1) * 4096), right[n]);
		assert_int_equal(m.count, count);
	}
	for (size_t n = 0; n < IDS; n++)
		assert_ptr_equal(idmap_get(&m, (n + 1) * 4096), right[n]);
}

static void walks_each_once(void **state)
{
	_cleanup_(idmap_done) struct idmap m;
	static char values[1000];
	char met[1000] = { 0 };
	size_t n = 0;
	uint64_t id;
	void *value;

	idmap_init(&m, 1000);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(idmap_put(&m, i + 1, &values[i]), 0);
	idmap_for_each (&m, at, id, value) {
		assert_ptr_equal(value, &values[id - 1]);
		assert_false(met[id - 1]);
		met[id - 1] = 1;
		n++;
	}
	assert_int_equal(n, 1000);
}

/* A table that many have left takes nothing, and takes entries again. */
static void a_crowd_leaves_nothing(void **state)
{
	_cleanup_(idmap_done) struct idmap m;
	int value;

	idmap_init(&m, 1000);
	for (uint64_t id = 1; id <= 1000; id++)
		assert_int_equal(idmap_put(&m, id, &value), 0);
	for (uint64_t id = 1; id <= 1000; id++) {
		assert_true(idmap_bytes(&m) > 0);
		assert_ptr_equal(idmap_remove(&m, id), &value);
	}
	assert_int_equal(idmap_bytes(&m), 0);
	assert_null(idmap_get(&m, 1));
	assert_int_equal(idmap_put(&m, 7, &value), 0);
	assert_ptr_equal(idmap_get(&m, 7), &value);
	for (uint64_t id = 2000; id < 2999; id++)
		assert_int_equal(idmap_put(&m, id, &value), 0);
	assert_int_equal(idmap_put(&m, 1, &value), -ENOSPC);
}

/* The values are freed, and the table can be used again. */
static void frees_values(void **state)
{
	struct idmap m;

	idmap_init(&m, 2);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(idmap_put(&m, 1, malloc(8)), 0);
		assert_int_equal(idmap_put(&m, 2, malloc(8)), 0);
		idmap_free(&m, free);
		assert_int_equal(m.count, 0);
	}
}

UNIT_TESTS(idmap)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_table_answers),	cmocka_unit_test(puts_gets_replaces),
		cmocka_unit_test(a_wall_of_none_holds), cmocka_unit_test(agrees_with_a_plain_array),
		cmocka_unit_test(walks_each_once),	cmocka_unit_test(a_crowd_leaves_nothing),
		cmocka_unit_test(frees_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
