/* SPDX-License-Identifier: BSD-2-Clause */
/* disks_testing.h: the part of /proc and /sys that names disks, as a machine with all sorts has it.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_DISKS_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_DISKS_TESTING_H

#include <stddef.h>

/*
 * Makes it below a new folder, with its path in `root`: vda (254:0) vda1 at / and, of parts of it,
 *   5 times more; vda2 for swap; vda3 dm-0 (253:0) "vg0-data" on vda3 and nvme0n1p1, at "/srv/my
 *   data" dm-1 (253:1) on dm-0, "crypt", mounted nowhere nvme0n1 (259:0), nvme0n1p1 (259:1);
 *   nvme1n1 (259:2), btrfs at /home md127 (9:127) raid1 on sda (8:0) and on a disk that is not
 *   listed; md127p1 at /var loop0 (7:0) of a file in /srv/my data; loop1 of one below a mount point
 *   that is hidden
 */
void disks_testing_make(char *root, size_t space);
void disks_testing_remove(const char *root);

/* Writes a file below the root, and the folders above it. */
void disks_testing_write(const char *root, const char *path, const char *text);

#endif
