/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of mount tables; the mounts themselves are tests/broker's. */
#include "tests/unit/runner/unit.h"
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

static void expect_text(struct mounts_text text, const char *expected)
{
	char plain[64];

	assert_int_equal(mounts_unescape(text, plain, sizeof(plain)), strlen(expected));
	assert_string_equal(plain, expected);
}

/* Lines without a device, without a point or without a type are no mounts. */
static void rows(void **state)
{
	static const char text[] =
		"36 35 254:1 / /mnt\\0401 rw,noatime shared:1 master:7 - ext4 /dev/vda1 rw\n"
		"37 35 254 / /x rw - ext4 /dev/x rw\n"
		"38 35 4294967296:0 / /x rw - ext4 /dev/x rw\n"
		"39 35 1:x / /x rw - ext4 /dev/x rw\n"
		"40 35 1:2 /\n"
		"41 35 1:2 / /x rw ext4\n"
		"\n"
		"42 36 0:30 /srv/a /b rw - fuse.x  rw";
	const char *at = text;
	struct mounts_row row;

	assert_true(mounts_next(&at, &row));
	assert_int_equal(row.major, 254);
	assert_int_equal(row.minor, 1);
	expect_text(row.root, "/");
	expect_text(row.point, "/mnt 1");
	expect_text(row.type, "ext4");
	expect_text(row.source, "/dev/vda1");
	assert_true(mounts_next(&at, &row));
	assert_int_equal(row.minor, 30);
	expect_text(row.root, "/srv/a");
	expect_text(row.point, "/b");
	expect_text(row.type, "fuse.x");
	expect_text(row.source, "");
	assert_false(mounts_next(&at, &row));
	assert_false(mounts_next(&at, &row));
}

static size_t unescape(const char *text, char *to, size_t space)
{
	return mounts_unescape((struct mounts_text){ text, strlen(text) }, to, space);
}

/* What is no escape stays; what has no room is counted. */
static void escapes(void **state)
{
	char to[8];

	assert_int_equal(unescape("a\\011\\012\\134b", to, sizeof(to)), 5);
	assert_string_equal(to, "a\t\n\\b");
	assert_int_equal(unescape("\\04", to, sizeof(to)), 3);
	assert_string_equal(to, "\\04");
	assert_int_equal(unescape("\\080\\777", to, sizeof(to)), 8);
	assert_string_equal(to, "\\080\\77");
	assert_int_equal(unescape("12345678", to, sizeof(to)), 8);
	assert_string_equal(to, "1234567");
	assert_int_equal(unescape("x", to, 1), 1);
	assert_string_equal(to, "");
}

UNIT_TESTS(mounts)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types),
		cmocka_unit_test(ids),
		cmocka_unit_test(rows),
		cmocka_unit_test(escapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
