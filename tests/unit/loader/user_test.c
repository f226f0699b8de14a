/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "loader/user.h"

static void names_and_numbers(void **state)
{
	uid_t uid = 7;

	assert_int_equal(user_find("root", &uid), 0);
	assert_int_equal(uid, 0);
	assert_int_equal(user_find("4242", &uid), 0);
	assert_int_equal(uid, 4242);
	assert_int_equal(user_find("4294967294", &uid), 0);
	assert_int_equal(uid, 4294967294u);
}

static void refuses(void **state)
{
	static const char *const names[] = { "no-such-user", "4294967295", "-1", "root:x", "" };
	uid_t uid = 7;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(user_find(names[i], &uid), -ENOENT);
	assert_int_equal(uid, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_numbers),
		cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
