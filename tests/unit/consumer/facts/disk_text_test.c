/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include "consumer/facts/disk_text.h"
#include "shared/json/jsonw.h"
#include "tests/unit/consumer/testing/disks_testing.h"

static char root[64];
static struct facts_disks disks;

static int set_up(void **state)
{
	disks_testing_make(root, sizeof(root));
	facts_disks_read(&disks, root);
	return 0;
}

static int tear_down(void **state)
{
	facts_disks_done(&disks);
	disks_testing_remove(root);
	return 0;
}

static void expect_words(uint32_t major, uint32_t minor, const char *wanted)
{
	char text[DISK_TEXT_BYTES];

	disk_text_say(&disks, major, minor, text);
	assert_string_equal(text, wanted);
}

static void test_words(void **state)
{
	expect_words(254, 1, "vda1 at /, /pods/1 and 4 more");
	expect_words(254, 0, "vda at /, /pods/1 and 5 more");
	expect_words(254, 2, "vda2");
	expect_words(253, 0, "dm-0 (vg0-data) at /srv/my data");
	expect_words(253, 1, "dm-1 (crypt)");
	expect_words(9, 127, "md127 (raid1) at /var");
	expect_words(259, 2, "nvme1n1 at /home");
	expect_words(7, 0, "loop0 (/srv/my data/disk.img)");
	expect_words(8, 0, "sda at /var");
	expect_words(8, 16, "8:16");
}

static void expect_written(const struct facts_disks *d, uint32_t major, uint32_t minor,
			   size_t max_bytes, const char *wanted)
{
	struct jsonw w;

	jsonw_init(&w, max_bytes);
	jsonw_object(&w, NULL);
	disk_text_write(d, major, minor, &w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_int_equal(w.bytes, strlen(wanted));
	assert_memory_equal(w.data, wanted, w.bytes);
	jsonw_done(&w);
}

static void test_written(void **state)
{
	expect_written(
		&disks, 7, 0, 8192,
		"{\"stack\":[{\"device\":\"loop0\",\"kind\":\"loop\",\"file\":\"/srv/my "
		"data/disk.img\",\"over\":[\"dm-0\"]},{\"device\":\"dm-0\",\"kind\":\"dm\","
		"\"name\":\"vg0-data\",\"over\":[\"vda3\",\"nvme0n1p1\"],\"mounts\":[\"/srv/my "
		"data\"]},{\"device\":\"vda3\",\"kind\":\"partition\",\"over\":[\"vda\"]},"
		"{\"device\":\"nvme0n1p1\",\"kind\":\"partition\",\"over\":[\"nvme0n1\"]},"
		"{\"device\":\"vda\",\"kind\":\"disk\"},{\"device\":\"nvme0n1\",\"kind\":"
		"\"disk\"}]}");
	expect_written(&disks, 9, 127, 8192,
		       "{\"stack\":[{\"device\":\"md127\",\"kind\":\"md\",\"level\":\"raid1\","
		       "\"over\":[\"sda\"],\"over_more\":1},{\"device\":\"md127p1\",\"kind\":"
		       "\"partition\",\"over\":[\"md127\"],\"mounts\":[\"/var\"]},{\"device\":"
		       "\"sda\",\"kind\":\"disk\"}]}");
	expect_written(&disks, 254, 1, 8192,
		       "{\"stack\":[{\"device\":\"vda1\",\"kind\":\"partition\",\"over\":[\"vda\"],"
		       "\"mounts\":[\"/\",\"/pods/1\",\"/pods/2\",\"/pods/3\"],\"mounts_more\":2},"
		       "{\"device\":\"vda\",\"kind\":\"disk\"}]}");
	expect_written(&disks, 254, 2, 8192,
		       "{\"stack\":[{\"device\":\"vda2\",\"kind\":\"partition\",\"over\":[\"vda\"],"
		       "\"swap\":true},{\"device\":\"vda\",\"kind\":\"disk\"}]}");
	expect_written(&disks, 1, 1, 8192, "{}");
	expect_written(NULL, 254, 1, 8192, "{}");
}

/* What has no room in half of the line is counted. */
static void test_room(void **state)
{
	expect_written(&disks, 9, 127, 180,
		       "{\"stack\":[{\"device\":\"md127\",\"kind\":\"md\",\"level\":\"raid1\","
		       "\"over\":[\"sda\"],\"over_more\":1}],\"stack_more\":2}");
}

/* Paths as long as there are, in a table that ends in the middle; and no table at all. */
static void test_long(void **state)
{
	char line[2200] = "/", name[300], text[DISK_TEXT_BYTES];
	struct facts_disks d;
	size_t n;

	memset(name, 'n', 255);
	name[255] = '\0';
	for (n = 1; n < 2000; n = strlen(line))
		snprintf(line + n, sizeof(line) - n, "%s/", name);
	snprintf(line + n, sizeof(line) - n, "end");
	disks_testing_write(root, "/sys/devices/virtual/block/loop0/loop/backing_file", line);
	facts_disks_read(&d, root);
	disk_text_say(&d, 7, 0, text);
	assert_non_null(strstr(text, " bytes]"));
	assert_non_null(strstr(text, "/end)"));
	facts_disks_done(&d);

	disks_testing_write(root, "/proc/1/mountinfo", "26 1 254:1 / / rw");
	facts_disks_read(&d, root);
	disk_text_say(&d, 254, 1, text);
	assert_string_equal(text, "vda1");
	free(d.mounts);
	d.mounts = NULL;
	expect_written(&d, 259, 2, 8192,
		       "{\"stack\":[{\"device\":\"nvme1n1\",\"kind\":\"disk\"}],\"mounts_reason\":"
		       "\"the mount table of process 1 cannot be read\"}");
	facts_disks_done(&d);
}

UNIT_TESTS(disk_text)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_written),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
