/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/symbols/modules.h"

/* The identity of inode `inode` of a file system. */
static struct file_identity file(uint64_t inode)
{
	return (struct file_identity){ .device = 1, .inode = inode, .bytes = 100 };
}

static struct module *find(struct modules *t, const struct file_identity *identity,
			   const char *path)
{
	struct module *m;

	assert_int_equal(modules_file(t, identity, path, false, &m), 0);
	return m;
}

static void test_identity(void **state)
{
	struct file_identity identity = file(2), others[6];
	struct module *a, *b;
	struct modules t;

	modules_init(&t);
	a = find(&t, &identity, "/lib/a");
	assert_ptr_equal(find(&t, &identity, "/lib/a"), a);
	for (size_t i = 0; i < 6; i++)
		others[i] = identity;
	others[0].device++;
	others[1].inode++;
	others[2].generation++; /* removed, and another file has the number */
	others[3].bytes++;	/* written in place */
	others[4].changed_ns++;
	others[5].written_ns++;
	for (size_t i = 0; i < 6; i++) {
		b = find(&t, &others[i], "/lib/a");
		assert_ptr_equal(modules_at(&t, i + 1), b);
		assert_ptr_equal(find(&t, &others[i], "/lib/a"), b);
	}
	assert_ptr_equal(find(&t, &identity, "/lib/a"), a);
	assert_ptr_not_equal(find(&t, &identity, "/lib/b"), a);
	b = find(&t, &identity, "/lib/a (deleted)");
	assert_ptr_not_equal(a, b);
	assert_true(b->deleted);
	assert_string_equal(b->path, "/lib/a");
	assert_ptr_equal(modules_at(&t, 0), a);
	assert_null(modules_at(&t, 9));
	modules_done(&t);
}

static void test_build_ids(void **state)
{
	uint8_t id[BUILD_ID_BYTES] = { 1, 2, 3, [19] = 20 },
		short_id[BUILD_ID_BYTES] = { 1, [15] = 9 };
	struct module *a, *b;
	struct modules t;

	modules_init(&t);
	assert_int_equal(modules_build_id(&t, id, &a), 0);
	assert_int_equal(modules_build_id(&t, id, &b), 0);
	assert_ptr_equal(a, b);
	assert_int_equal(a->build_id_bytes, BUILD_ID_BYTES);
	assert_string_equal(a->path, "");
	assert_int_equal(modules_build_id(&t, short_id, &b), 0);
	assert_ptr_not_equal(a, b);
	assert_int_equal(b->build_id_bytes, 16);
	modules_done(&t);
}

/* A build-id that is not the known one retires the module: the next that asks gets another. */
static void test_contradicted(void **state)
{
	const uint8_t one[BUILD_ID_BYTES] = { 1, [19] = 1 }, two[BUILD_ID_BYTES] = { 2, [19] = 2 };
	struct file_identity identity = file(2);
	struct module *a, *b;
	struct modules t;

	modules_init(&t);
	a = find(&t, &identity, "/lib/a");
	assert_true(modules_learn_build_id(&t, a, one));
	assert_true(modules_learn_build_id(&t, a, one));
	assert_false(modules_learn_build_id(&t, a, two));
	assert_true(a->retired);
	assert_false(modules_learn_build_id(&t, a, two));
	b = find(&t, &identity, "/lib/a");
	assert_ptr_not_equal(a, b);
	assert_true(modules_learn_build_id(&t, b, two));
	assert_ptr_equal(find(&t, &identity, "/lib/a"), b);
	assert_int_equal(a->build_id[0], 1);
	modules_done(&t);
}

static bool is_second(void *context, const struct module *m)
{
	return m == context;
}

/* Modules without a holder are forgotten, the longest unused first, and no more than asked for. */
static void test_forget(void **state)
{
	const uint8_t id[BUILD_ID_BYTES] = { 1, [19] = 1 };
	struct file_identity identity;
	struct module *m[9], *list;
	struct modules t;
	size_t place = 6;

	modules_init(&t);
	for (uint64_t i = 0; i < 8; i++) {
		identity = file(i + 1);
		m[i] = find(&t, &identity, "/lib/a");
		symbols_hold(m[i]);
		if (i != 3)
			symbols_release(m[i], 100 - i);
	}
	assert_int_equal(modules_build_id(&t, id, &m[8]), 0);
	m[8]->released_ns = 1;
	find(&t, &(struct file_identity){ 0 }, "[vdso]");
	assert_int_equal(modules_forget(&t, 10, 1000, is_second, m[1]), 0);
	assert_int_equal(modules_forget(&t, 0, 1, is_second, m[1]), 0);
	/* Of ten: the one by build-id, then those released first: 7, 6, 5. */
	assert_int_equal(modules_forget(&t, 6, 1000, is_second, m[1]), 4);
	assert_true(m[8]->forgotten && m[7]->forgotten && m[6]->forgotten && m[5]->forgotten);
	identity = file(8);
	assert_ptr_not_equal(find(&t, &identity, "/lib/a"), m[7]);
	list = modules_take_forgotten(&t, &place);
	assert_int_equal(place, 5);
	for (size_t i = 0; i < 4; i++) {
		struct module *next = list->next;

		assert_true(list->taken);
		modules_free(list);
		list = next;
	}
	assert_null(list);
	assert_null(modules_take_forgotten(&t, &place));
	/* 3 is held, 1 is in use, [vdso] is for good; file 8 is new and released at 0. */
	assert_int_equal(modules_forget(&t, 0, 1000, is_second, m[1]), 4);
	assert_false(m[3]->forgotten || m[1]->forgotten);
	modules_done(&t);
}

static void test_walls(void **state)
{
	char *path = malloc(SYMBOLS_PATH_BYTES + 1);
	struct file_identity identity;
	struct module *m = NULL;
	struct modules t;

	assert_non_null(path);
	memset(path, 'x', SYMBOLS_PATH_BYTES);
	path[SYMBOLS_PATH_BYTES] = '\0';
	modules_init(&t);
	identity = file(1);
	assert_int_equal(modules_file(&t, &identity, path, false, &m), -EINVAL);
	assert_int_equal(modules_file(&t, &identity, "", false, &m), -EINVAL);
	for (uint64_t i = 1; i <= SYMBOLS_MODULES_MAX; i++) {
		identity = file(i);
		find(&t, &identity, "/lib/a");
	}
	m = NULL;
	identity = file(SYMBOLS_MODULES_MAX + 1);
	assert_int_equal(modules_file(&t, &identity, "/lib/a", false, &m), -ENOSPC);
	assert_null(m);
	identity = file(77);
	find(&t, &identity, "/lib/a");
	modules_done(&t);
	free(path);
}

UNIT_TESTS(modules)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),     cmocka_unit_test(test_build_ids),
		cmocka_unit_test(test_contradicted), cmocka_unit_test(test_forget),
		cmocka_unit_test(test_walls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
