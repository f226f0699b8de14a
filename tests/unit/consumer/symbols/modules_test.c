/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/symbols/modules.h"

static void test_identity(void **state)
{
	struct module *a, *b;
	struct modules t;

	modules_init(&t);
	assert_int_equal(modules_file(&t, 1, 2, "/lib/a", false, &a), 0);
	assert_int_equal(modules_file(&t, 1, 2, "/lib/a", false, &b), 0);
	assert_ptr_equal(a, b);
	assert_int_equal(modules_file(&t, 1, 3, "/lib/a", false, &b), 0);
	assert_ptr_not_equal(a, b);
	assert_int_equal(modules_file(&t, 3, 2, "/lib/a", false, &b), 0);
	assert_ptr_not_equal(a, b);
	assert_int_equal(modules_file(&t, 1, 2, "/lib/b", false, &b), 0);
	assert_ptr_not_equal(a, b);
	assert_int_equal(modules_file(&t, 1, 2, "/lib/a (deleted)", false, &b), 0);
	assert_ptr_not_equal(a, b);
	assert_true(b->deleted);
	assert_string_equal(b->path, "/lib/a");
	assert_ptr_equal(modules_at(&t, 0), a);
	assert_null(modules_at(&t, 5));
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

static void test_walls(void **state)
{
	char *path = malloc(SYMBOLS_PATH_BYTES + 1);
	struct module *m = NULL;
	struct modules t;

	assert_non_null(path);
	memset(path, 'x', SYMBOLS_PATH_BYTES);
	path[SYMBOLS_PATH_BYTES] = '\0';
	modules_init(&t);
	assert_int_equal(modules_file(&t, 1, 1, path, false, &m), -EINVAL);
	assert_int_equal(modules_file(&t, 1, 1, "", false, &m), -EINVAL);
	for (uint64_t i = 0; i < SYMBOLS_MODULES_MAX; i++)
		assert_int_equal(modules_file(&t, 1, i, "/lib/a", false, &m), 0);
	m = NULL;
	assert_int_equal(modules_file(&t, 2, 1, "/lib/a", false, &m), -ENOSPC);
	assert_null(m);
	assert_int_equal(modules_file(&t, 1, 77, "/lib/a", false, &m), 0);
	modules_done(&t);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_build_ids),
		cmocka_unit_test(test_walls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
