/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/disks_testing.h"

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/runner/unit.h"

#include "shared/tools/macro.h"

#define PATH_BYTES 512

static const char partitions[] = "major minor  #blocks  name\n\n"
				 " 254        0  268435456 vda\n"
				 " 254        1  100 vda1\n"
				 " 254        2  100 vda2\n"
				 " 254        3  100 vda3\n"
				 " 253        0  100 dm-0\n"
				 " 253        1  100 dm-1\n"
				 " 259        0  100 nvme0n1\n"
				 " 259        1  100 nvme0n1p1\n"
				 " 259        2  100 nvme1n1\n"
				 "   8        0  100 sda\n"
				 "   9      127  100 md127\n"
				 " 259        3  100 md127p1\n"
				 "   7        0  100 loop0\n"
				 "   7        1  100 loop1\n";

static const char mounts[] = "26 1 254:1 / / rw shared:1 - ext4 /dev/vda1 rw\n"
			     "31 26 254:1 /volumes/1 /pods/1 rw - ext4 /dev/vda1 rw\n"
			     "32 26 254:1 /volumes/2 /pods/2 rw - ext4 /dev/vda1 rw\n"
			     "33 26 254:1 /volumes/3 /pods/3 rw - ext4 /dev/vda1 rw\n"
			     "34 26 254:1 /volumes/4 /pods/4 rw - ext4 /dev/vda1 rw\n"
			     "35 26 254:1 /volumes/5 /pods/5 rw - ext4 /dev/vda1 rw\n"
			     "36 26 253:0 / /srv/my\\040data rw - xfs /dev/mapper/vg0-data rw\n"
			     "37 26 0:45 /@home /home rw - btrfs /dev/nvme1n1 rw\n"
			     "38 26 0:46 / /tmp rw - tmpfs /dev/vda3 rw\n"
			     "39 26 259:3 / /var rw - ext4 /dev/md127p1 rw\n"
			     "40 26 8:0 / /mnt rw - ext4 /dev/sda rw\n"
			     "41 40 0:47 / /mnt rw - tmpfs tmpfs rw\n";

static const char swaps[] = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
			    "/dev/vda2                               partition\t999420\t\t0\t\t-2\n"
			    "/swapfile                               file\t\t999420\t\t0\t\t-3\n";

static const struct {
	const char *path, *text;
} files[] = {
	{ "/proc/partitions", partitions },
	{ "/proc/1/mountinfo", mounts },
	{ "/proc/swaps", swaps },
	{ "/sys/devices/virtual/block/dm-0/dm/name", "vg0-data\n" },
	{ "/sys/devices/virtual/block/dm-0/slaves/vda3/dev", "" },
	{ "/sys/devices/virtual/block/dm-0/slaves/nvme0n1p1/dev", "" },
	{ "/sys/devices/virtual/block/dm-1/dm/name", "crypt\n" },
	{ "/sys/devices/virtual/block/dm-1/slaves/dm-0/dev", "" },
	{ "/sys/devices/virtual/block/md127/md/level", "raid1\n" },
	{ "/sys/devices/virtual/block/md127/slaves/sda/dev", "" },
	{ "/sys/devices/virtual/block/md127/slaves/sdq/dev", "" },
	{ "/sys/devices/virtual/block/loop0/loop/backing_file", "/srv/my data/disk.img\n" },
	{ "/sys/devices/virtual/block/loop1/loop/backing_file", "/mnt/other.img (deleted)\n" },
	{ "/sys/devices/virtual/block/loop2/loop/backing_file", "/never.listed\n" },
};

void disks_testing_write(const char *root, const char *path, const char *text)
{
	char all[PATH_BYTES];
	FILE *file;

	snprintf(all, sizeof(all), "%s%s", root, path);
	for (char *slash = all + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(all, 0755);
		*slash = '/';
	}
	file = fopen(all, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

void disks_testing_make(char *root, size_t space)
{
	snprintf(root, space, "/tmp/trocar-disks-XXXXXX");
	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		disks_testing_write(root, files[i].path, files[i].text);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

void disks_testing_remove(const char *root)
{
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
