/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <errno.h>

#include "loader/accounts.h"

static const char text[] = "root:x:0:\ntrocar-admin:x:990:a,b\nhuge:x:4294967295:\nbad:x:12y:\n"
			   "short:x\n:x:5:\ntrocar:x:991:\nlast:x:992:me";

static void finds(void **state)
{
	gid_t gid = 7;

	assert_int_equal(accounts_parse(text, "trocar", &gid), 0);
	assert_int_equal(gid, 991);
	assert_int_equal(accounts_parse(text, "trocar-admin", &gid), 0);
	assert_int_equal(gid, 990);
	assert_int_equal(accounts_parse(text, "last", &gid), 0);
	assert_int_equal(gid, 992);
}

static void refuses(void **state)
{
	static const char *const names[] = { "troca", "trocar:x", "huge", "bad", "short", "x" };
	gid_t gid = 7;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(accounts_parse(text, names[i], &gid), -ENOENT);
	assert_int_equal(accounts_parse("", "trocar", &gid), -ENOENT);
	assert_int_equal(gid, 7);
}

static void groups_here(void **state)
{
	gid_t gid = 7;

	assert_int_equal(accounts_find_group("root", &gid), 0);
	assert_int_equal(gid, 0);
	assert_int_equal(accounts_find_group("12345", &gid), 0);
	assert_int_equal(gid, 12345);
	assert_int_equal(accounts_find_group("4294967295", &gid), -ENOENT);
	assert_int_equal(accounts_find_group("no-such-group-here", &gid), -ENOENT);
}

static void users_here(void **state)
{
	uid_t uid = 7;

	assert_int_equal(accounts_find_user("root", &uid), 0);
	assert_int_equal(uid, 0);
	assert_int_equal(accounts_find_user("4242", &uid), 0);
	assert_int_equal(uid, 4242);
	assert_int_equal(accounts_find_user("4294967294", &uid), 0);
	assert_int_equal(uid, 4294967294u);
}

static void no_user(void **state)
{
	static const char *const names[] = { "no-such-user", "4294967295", "-1", "root:x", "" };
	uid_t uid = 7;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(accounts_find_user(names[i], &uid), -ENOENT);
	assert_int_equal(uid, 7);
}

UNIT_TESTS(accounts)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),       cmocka_unit_test(refuses),
		cmocka_unit_test(groups_here), cmocka_unit_test(users_here),
		cmocka_unit_test(no_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
