/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts_disks.h: what the block devices of the host are made of, and where they are mounted: the
 * disk of each partition, the stack of devices (device mapper, arrays, loop devices), and the mount
 * points that process 1 sees. From /proc and /sys/devices/virtual/block alone. Report thread only,
 * which may wait for files.
 */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_DISKS_H
#define TROCAR_CONSUMER_FACTS_FACTS_DISKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/facts/facts_devices.h"
#include "shared/files/mounts.h"

#define FACTS_DISKS_BELOW \
	16 /* devices that one stands on, and that are listed; others are counted \ */

enum facts_disk_kind {
	FACTS_DISK_WHOLE, /* a disk, or none of the others */
	FACTS_DISK_PARTITION,
	FACTS_DISK_DM,
	FACTS_DISK_MD,
	FACTS_DISK_LOOP,
	FACTS_DISK_KINDS_,
};

/* One device. */
struct facts_disk {
	enum facts_disk_kind kind;
	char *name; /* owned: what dm calls it, the level of an array, the path of a loop's file;
		       NULL: none */
	uint16_t below[FACTS_DISKS_BELOW]; /* what it stands on: places in `devices.rows` */
	uint16_t n_below;
	uint16_t below_more; /* that have no room or are not listed */
	bool swap;	     /* the kernel swaps to it */
};

/* All zeros: nothing is known. */
struct facts_disks {
	struct facts_devices devices;
	struct facts_disk *items; /* owned; as many as `devices.rows` */
	char *mounts;		  /* owned; mountinfo of process 1; NULL: it cannot be read */
};

/*
 * Reads everything below `root` ("" for the host's own). What cannot be read is not known. Release
 * with facts_disks_done.
 */
void facts_disks_read(struct facts_disks *d, const char *root);
void facts_disks_done(struct facts_disks *d);

/* Notes the devices of `text`, the content of /proc/swaps. Fuzzed (tests/fuzz/consumer/facts.c). */
void facts_disks_add_swaps(struct facts_disks *d, const char *text, size_t bytes);

/* Returns the place of a device in `devices.rows`; -1: it is not listed. `d` may be NULL. */
int facts_disks_find(const struct facts_disks *d, uint32_t major, uint32_t minor);

/* Whether the file system that is mounted in `row` is on the device at place `i`. */
bool facts_disks_is_mount(const struct facts_disks *d, size_t i, const struct mounts_row *row);

/*
 * Writes the places of the device at place `i`, of all that stand on it, and of those below it,
 * itself the first, then upwards, then downwards; the nearest first. Returns how many there are,
 * which may be more than `most`. *ret_up is how many of those written are no lower than it.
 */
size_t facts_disks_stack(const struct facts_disks *d, size_t i, uint16_t *places, size_t most,
			 size_t *ret_up);

#endif
