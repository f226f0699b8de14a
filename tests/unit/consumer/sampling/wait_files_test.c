/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include "consumer/sampling/wait_files.h"
#include "consumer/sampling/wait_objects.h"
#include "shared/json/jsonw.h"

/* A file as the kernel side reports it. */
static struct look_on file_at(const char *path, uint8_t end)
{
	struct look_on on = { .kind = LOOK_ON_FILE,
			      .device = 8u << 20 | 1,
			      .inode = 2619,
			      .name = "cut_",
			      .fs = "ext4",
			      .path_end = end };

	strncpy(on.path, path, sizeof(on.path) - 1);
	return on;
}

static void expect_written(const struct look_on *on, const char *wanted)
{
	struct look_on plain = wait_objects_plain(on);
	struct jsonw w;

	jsonw_init(&w, 4096);
	jsonw_object(&w, NULL);
	wait_files_write(&plain, &w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_int_equal(w.bytes, strlen(wanted));
	assert_memory_equal(w.data, wanted, w.bytes);
	jsonw_done(&w);
}

static void expect_words(const struct look_on *on, const char *wanted)
{
	struct look_on plain = wait_objects_plain(on);
	char text[256];

	assert_int_equal(wait_files_say(&plain, text, sizeof(text)), strlen(wanted));
	assert_string_equal(text, wanted);
}

static void test_whole(void **state)
{
	struct look_on on = file_at("/srv/pg/base/16384/2619", LOOK_PATH_WHOLE);

	expect_words(&on, " on the file /srv/pg/base/16384/2619");
	expect_written(&on,
		       "{\"name\":\"2619\",\"path\":\"/srv/pg/base/16384/2619\",\"mount\":\"/\","
		       "\"fs\":\"ext4\",\"device\":\"8:1\",\"inode\":2619}");
	on.point_bytes = 4;
	on.deleted = 7;
	expect_words(&on, " on the file /srv/pg/base/16384/2619 (deleted)");
	expect_written(&on,
		       "{\"name\":\"2619\",\"path\":\"/srv/pg/base/16384/2619\",\"mount\":\"/srv\","
		       "\"deleted\":true,\"fs\":\"ext4\",\"device\":\"8:1\",\"inode\":2619}");
	on = file_at("/", LOOK_PATH_WHOLE);
	expect_words(&on, " on the file /");
	expect_written(&on, "{\"name\":\"/\",\"path\":\"/\",\"mount\":\"/\",\"fs\":\"ext4\","
			    "\"device\":\"8:1\",\"inode\":2619}");
}

/* What was left out is counted; a mount point that lost a part is not reported. */
static void test_cut(void **state)
{
	struct look_on on = file_at("/srv/pg/base/2619", LOOK_PATH_WHOLE);

	on.path_cut = 1200;
	on.path_head = 4;
	on.point_bytes = 4;
	expect_words(&on, " on the file /srv/[1200 bytes]/pg/base/2619");
	expect_written(&on,
		       "{\"name\":\"2619\",\"path\":\"/srv/[1200 bytes]/pg/base/2619\",\"mount\":"
		       "\"/srv\",\"fs\":\"ext4\",\"device\":\"8:1\",\"inode\":2619}");
	on.point_bytes = LOOK_PATH_NO_POINT;
	expect_written(&on, "{\"name\":\"2619\",\"path\":\"/srv/[1200 bytes]/pg/base/2619\",\"fs\":"
			    "\"ext4\",\"device\":\"8:1\",\"inode\":2619}");
}

static void test_not_whole(void **state)
{
	struct look_on on = file_at("/x/y", LOOK_PATH_DETACHED);

	expect_words(&on, " on the file (unreachable)/x/y");
	expect_written(&on,
		       "{\"name\":\"y\",\"path\":\"(unreachable)/x/y\",\"path_reason\":\"its file "
		       "system is mounted nowhere any more, or has no names\",\"fs\":\"ext4\","
		       "\"device\":\"8:1\",\"inode\":2619}");
	on.path_end = LOOK_PATH_DEEP;
	expect_words(&on, " on the file [...]/x/y");
	on.path_end = LOOK_PATH_RENAMED;
	expect_words(&on, " on the file cut_");
	expect_written(&on,
		       "{\"name\":\"cut_\",\"path_reason\":\"a part of it was renamed as it was "
		       "read\",\"fs\":\"ext4\",\"device\":\"8:1\",\"inode\":2619}");
	on = file_at("", LOOK_PATH_DETACHED);
	expect_words(&on, " on the file cut_");
	on = file_at("", LOOK_PATH_NONE);
	on.fs[0] = '\0';
	expect_written(&on, "{\"name\":\"cut_\",\"device\":\"8:1\",\"inode\":2619}");
}

/* In a sentence a path is shorter than in its line. */
static void test_long(void **state)
{
	struct look_on on = { .kind = LOOK_ON_FILE, .path_end = LOOK_PATH_WHOLE };
	char text[256];

	memset(on.path, 'n', sizeof(on.path) - 1);
	on.path[0] = '/';
	on.path_cut = UINT32_MAX;
	on.path_head = 63;
	assert_true(wait_files_say(&on, text, sizeof(text)) < 160);
	assert_non_null(strstr(text, " bytes]"));
}

/* Words that no kernel side writes. */
static void test_unsound(void **state)
{
	struct look_on on = file_at("/srv", 200), plain;
	char path[WAIT_FILES_PATH_BYTES];

	plain = wait_objects_plain(&on);
	assert_int_equal(plain.path_end, LOOK_PATH_NONE);
	assert_int_equal(wait_files_path(&plain, path), 0);
	on = file_at("/srv", LOOK_PATH_WHOLE);
	on.path_cut = 5;
	on.path_head = 9;
	on.point_bytes = 700;
	plain = wait_objects_plain(&on);
	assert_int_equal(plain.path_cut, 0);
	assert_int_equal(plain.point_bytes, LOOK_PATH_NO_POINT);
	memset(&on, 0xff, sizeof(on));
	on.kind = LOOK_ON_FILE;
	on.path_end = LOOK_PATH_DEEP;
	plain = wait_objects_plain(&on);
	assert_int_equal(plain.path[sizeof(plain.path) - 1], 0);
	assert_int_equal(plain.fs[sizeof(plain.fs) - 1], 0);
	assert_true(wait_files_path(&plain, path) < sizeof(path));
}

/* The same file by another path is another object, and so is one without a path. */
static void test_objects(void **state)
{
	struct look_on a = file_at("/a", LOOK_PATH_WHOLE), b = file_at("/b", LOOK_PATH_WHOLE);
	struct wait_objects o;

	wait_objects_init(&o);
	assert_int_equal(wait_objects_add(&o, &a), 1);
	assert_int_equal(wait_objects_add(&o, &b), 2);
	assert_int_equal(wait_objects_add(&o, &a), 1);
	a.path[100] = 'x';
	assert_int_equal(wait_objects_add(&o, &a), 1);
	a.kind = LOOK_ON_OTHER;
	assert_int_equal(wait_objects_get(&o, wait_objects_add(&o, &a))->path[0], 0);
	wait_objects_done(&o);
}

UNIT_TESTS(wait_files)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	  cmocka_unit_test(test_cut),
		cmocka_unit_test(test_not_whole), cmocka_unit_test(test_long),
		cmocka_unit_test(test_unsound),	  cmocka_unit_test(test_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
