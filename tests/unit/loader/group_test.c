/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "loader/group.h"

static const char text[] = "root:x:0:\ntrocar-admin:x:990:a,b\nhuge:x:4294967295:\nbad:x:12y:\n"
			   "short:x\n:x:5:\ntrocar:x:991:\nlast:x:992:me";

static void finds(void **state)
{
	gid_t gid = 7;

	assert_int_equal(group_parse(text, "trocar", &gid), 0);
	assert_int_equal(gid, 991);
	assert_int_equal(group_parse(text, "trocar-admin", &gid), 0);
	assert_int_equal(gid, 990);
	assert_int_equal(group_parse(text, "last", &gid), 0);
	assert_int_equal(gid, 992);
}

static void refuses(void **state)
{
	static const char *const names[] = { "troca", "trocar:x", "huge", "bad", "short", "x" };
	gid_t gid = 7;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(group_parse(text, names[i], &gid), -ENOENT);
	assert_int_equal(group_parse("", "trocar", &gid), -ENOENT);
	assert_int_equal(gid, 7);
}

static void here(void **state)
{
	gid_t gid = 7;

	assert_int_equal(group_find("root", &gid), 0);
	assert_int_equal(gid, 0);
	assert_int_equal(group_find("12345", &gid), 0);
	assert_int_equal(gid, 12345);
	assert_int_equal(group_find("4294967295", &gid), -ENOENT);
	assert_int_equal(group_find("no-such-group-here", &gid), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),
		cmocka_unit_test(refuses),
		cmocka_unit_test(here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
