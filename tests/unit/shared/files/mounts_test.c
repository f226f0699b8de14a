/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of mount tables; the mounts themselves are tests/broker's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "shared/files/mounts.h"
#include "shared/tools/macro.h"

static const char table[] = "21 30 0:19 / /a rw,nosuid shared:5 - sysfs sysfs rw\n"
			    "22 30 0:20 / /fuse\\040-\\040x rw - ext4 /dev/fuse rw\n"
			    "23 30 0:21 / /b rw master:1 - fuse trocar rw,user_id=0\n"
			    "24 30 0:22 / /c rw - fuse.sshfs host:/ rw\n"
			    "123 30 0:26 / /g rw\n"
			    "124 30 0:26 / /i rw - \n"
			    "28 30 0:27 / /h rw - overlay";

static void expect(uint64_t id, const char *type)
{
	size_t bytes = 0;
	const char *found = mounts_type(table, id, &bytes);

	if (!type) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_int_equal(bytes, strlen(type));
	assert_memory_equal(found, type, bytes);
}

static void types(void **state)
{
	size_t bytes;

	expect(21, "sysfs");
	expect(22, "ext4");
	expect(23, "fuse");
	expect(24, "fuse.sshfs");
	expect(124, "");
	expect(28, "overlay");
	expect(123, NULL);
	expect(3, NULL);
	expect(30, NULL);
	assert_null(mounts_type("", 23, &bytes));
}

static void ids(void **state)
{
	static const struct {
		const char *text;
		uint64_t id; /* 0: no such text */
	} rows[] = {
		{ "pos:\t0\nflags:\t012000000\nmnt_id:\t77\nino:\t5\n", 77 },
		{ "pos:\t0\nmnt_id:\t18446744073709551615", UINT64_MAX },
		{ "pos:\t0\nmnt_id:\t18446744073709551616\n", 0 },
		{ "pos:\t0\nmnt_id:\t7x\n", 0 },
		{ "pos:\t0\nmnt_id:\t\n", 0 },
		{ "mnt_id:\t7\n", 0 },
		{ "pos:\t0\nflags:\t0\n", 0 },
		{ "", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t id = 0;

		assert_int_equal(mounts_id(rows[i].text, &id), rows[i].id ? 0 : -EBADMSG);
		assert_int_equal(id, rows[i].id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(types), cmocka_unit_test(ids) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
