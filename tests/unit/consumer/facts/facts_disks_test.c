/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include "consumer/facts/facts_disks.h"
#include "shared/tools/macro.h"
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

static size_t place_of(const char *name)
{
	for (size_t i = 0; i < disks.devices.count; i++)
		if (!strcmp(disks.devices.rows[i].name, name))
			return i;
	fail_msg("no %s", name);
	return 0;
}

static const struct facts_disk *disk_of(const char *name)
{
	return &disks.items[place_of(name)];
}

static void expect_below(const char *name, const char *first, const char *second)
{
	const struct facts_disk *d = disk_of(name);
	const char *wanted[] = { first, second };
	size_t n = !!first + !!second;

	assert_int_equal(d->n_below, n);
	for (size_t i = 0; i < n; i++)
		assert_true(d->below[0] == place_of(wanted[i]) ||
			    d->below[n - 1] == place_of(wanted[i]));
}

static void test_kinds(void **state)
{
	static const struct {
		const char *device;
		enum facts_disk_kind kind;
		const char *name;
	} rows[] = {
		{ "vda", FACTS_DISK_WHOLE, NULL },
		{ "vda1", FACTS_DISK_PARTITION, NULL },
		{ "nvme0n1", FACTS_DISK_WHOLE, NULL },
		{ "nvme0n1p1", FACTS_DISK_PARTITION, NULL },
		{ "nvme1n1", FACTS_DISK_WHOLE, NULL },
		{ "md127", FACTS_DISK_MD, "raid1" },
		{ "md127p1", FACTS_DISK_PARTITION, NULL },
		{ "dm-0", FACTS_DISK_DM, "vg0-data" },
		{ "dm-1", FACTS_DISK_DM, "crypt" },
		{ "loop0", FACTS_DISK_LOOP, "/srv/my data/disk.img" },
		{ "loop1", FACTS_DISK_LOOP, "/mnt/other.img (deleted)" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct facts_disk *d = disk_of(rows[i].device);

		assert_int_equal(d->kind, rows[i].kind);
		if (rows[i].name)
			assert_string_equal(d->name, rows[i].name);
		else
			assert_null(d->name);
	}
	assert_true(disk_of("vda2")->swap);
	assert_false(disk_of("vda1")->swap);
}

/*
 * A disk that is not listed is counted; the file of a loop device is on the frontmost mount there.
 */
static void test_below(void **state)
{
	expect_below("vda", NULL, NULL);
	expect_below("vda1", "vda", NULL);
	expect_below("nvme0n1p1", "nvme0n1", NULL);
	expect_below("dm-0", "vda3", "nvme0n1p1");
	expect_below("dm-1", "dm-0", NULL);
	expect_below("md127", "sda", NULL);
	assert_int_equal(disk_of("md127")->below_more, 1);
	expect_below("md127p1", "md127", NULL);
	expect_below("loop0", "dm-0", NULL);
	expect_below("loop1", NULL, NULL);
}

static void expect_stack(const char *name, const char *all, size_t wanted_up)
{
	uint16_t places[16];
	char text[256] = "";
	size_t up, count = facts_disks_stack(&disks, place_of(name), places, 16, &up);

	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(text);

		snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "",
			 disks.devices.rows[places[i]].name);
	}
	assert_string_equal(text, all);
	assert_int_equal(up, wanted_up);
}

static void test_stack(void **state)
{
	uint16_t places[2];
	size_t up;

	expect_stack("vda", "vda vda1 vda2 vda3 dm-0 dm-1 loop0", 7);
	expect_stack("md127", "md127 md127p1 sda", 2);
	assert_int_equal(facts_disks_stack(&disks, place_of("vda"), places, 2, &up), 7);
	assert_int_equal(up, 2);
	assert_int_equal(places[1], place_of("vda1"));
	assert_int_equal(facts_disks_stack(&disks, place_of("loop0"), places, 1, &up), 6);
	assert_int_equal(up, 1);
}

static bool is_mount(const char *device, const char *line)
{
	struct mounts_row row;

	assert_true(mounts_next(&line, &row));
	return facts_disks_is_mount(&disks, place_of(device), &row);
}

/* Only of btrfs, which has no number of a device, the source counts. */
static void test_mounts(void **state)
{
	assert_true(is_mount("vda1", "1 2 254:1 /x /y rw - ext4 /dev/sdb rw"));
	assert_false(is_mount("vda1", "1 2 254:2 / /y rw - ext4 /dev/vda1 rw"));
	assert_true(is_mount("nvme1n1", "1 2 0:45 / /y rw - btrfs /dev/nvme1n1 rw"));
	assert_true(is_mount("dm-0", "1 2 0:45 / /y rw - btrfs /dev/mapper/vg0-data rw"));
	assert_false(is_mount("dm-1", "1 2 0:45 / /y rw - btrfs /dev/mapper/vg0-data rw"));
	assert_false(is_mount("nvme1n1", "1 2 0:45 / /y rw - tmpfs /dev/nvme1n1 rw"));
	assert_false(is_mount("nvme1n1", "1 2 0:45 / /y rw - btrfsx /dev/nvme1n1 rw"));
}

static void test_find(void **state)
{
	assert_int_equal(facts_disks_find(&disks, 254, 1), place_of("vda1"));
	assert_int_equal(facts_disks_find(&disks, 254, 9), -1);
	assert_int_equal(facts_disks_find(NULL, 254, 1), -1);
}

/* Devices that stand on each other in a circle, which no kernel reports, end the walk too. */
static void test_circle(void **state)
{
	struct facts_disks d;
	uint16_t places[4];
	size_t up;

	disks_testing_write(root, "/sys/devices/virtual/block/dm-0/slaves/dm-1/dev", "");
	facts_disks_read(&d, root);
	assert_true(facts_disks_stack(&d, (size_t)facts_disks_find(&d, 253, 0), places, 4, &up) >=
		    3);
	facts_disks_done(&d);
}

/* Without any of the files, and the host's own. */
static void test_nothing(void **state)
{
	struct facts_disks d;

	facts_disks_read(&d, "/nowhere");
	assert_int_equal(d.devices.count, 0);
	assert_int_equal(facts_disks_find(&d, 254, 1), -1);
	facts_disks_done(&d);
	facts_disks_read(&d, "");
	for (size_t i = 0; i < d.devices.count; i++)
		assert_true(d.items[i].n_below <= FACTS_DISKS_BELOW);
	facts_disks_done(&d);
}

UNIT_TESTS(facts_disks)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),	cmocka_unit_test(test_below),
		cmocka_unit_test(test_stack),	cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_find),	cmocka_unit_test(test_circle),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
