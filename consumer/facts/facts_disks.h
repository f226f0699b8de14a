/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts_disks.h: the structure of the host's block devices and their mount points: the disk of each
 * partition, the stack of devices (device mapper, arrays, loop devices), and the mount points that
 * process 1 sees. Uses only /proc and /sys/devices/virtual/block. Report thread only, which may
 * wait for files.
 */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_DISKS_H
#define TROCAR_CONSUMER_FACTS_FACTS_DISKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/facts/facts_devices.h"
#include "shared/files/mounts.h"

#define FACTS_DISKS_BELOW 16 /* listed devices directly below one; others are only counted */

enum facts_disk_kind {
	FACTS_DISK_WHOLE, /* a disk, or a device of no other kind */
	FACTS_DISK_PARTITION,
	FACTS_DISK_DM,
	FACTS_DISK_MD,
	FACTS_DISK_LOOP,
	FACTS_DISK_KINDS_,
};

/* One device. */
struct facts_disk {
	enum facts_disk_kind kind;
	char *name; /* owned: dm's name, an array's level, the path of a loop's file; NULL: none */
	uint16_t below[FACTS_DISKS_BELOW]; /* directly below: indexes into `devices.rows` */
	uint16_t n_below;
	uint16_t below_more; /* devices that did not fit or are not listed */
	bool swap;	     /* the kernel swaps to it */
};

/* All zeros: unknown. */
struct facts_disks {
	struct facts_devices devices;
	struct facts_disk *items; /* owned; one for each of `devices.rows` */
	char *mounts;		  /* owned; mountinfo of process 1; NULL: it cannot be read */
};

/*
 * Reads everything below `root` ("" for the host's own). Anything unreadable stays unknown. Release
 * with facts_disks_done.
 */
void facts_disks_read(struct facts_disks *d, const char *root);
void facts_disks_done(struct facts_disks *d);

/*
 * Records the devices in `text`, the content of /proc/swaps. Fuzzed (tests/fuzz/consumer/facts.c).
 */
void facts_disks_add_swaps(struct facts_disks *d, const char *text, size_t bytes);

/* Returns the index of a device in `devices.rows`; -1 if it is not listed. `d` may be NULL. */
int facts_disks_find(const struct facts_disks *d, uint32_t major, uint32_t minor);

/* Returns whether the file system mounted in `row` is on the device with index `i`. */
bool facts_disks_is_mount(const struct facts_disks *d, size_t i, const struct mounts_row *row);

/*
 * Writes the indexes of device `i`, of all devices above it, and of those below it: first itself,
 * then upwards, then downwards, the nearest first. Returns their number, which may be larger than
 * `most`. *ret_up is the number of written devices that are not below device `i`.
 */
size_t facts_disks_stack(const struct facts_disks *d, size_t i, uint16_t *places, size_t most,
			 size_t *ret_up);

#endif
