/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * disk_text.h: describes a block device: the devices below it and its mount points, for programs
 * and for people. Paths that are too long are cut in the middle (path_text.h).
 */
#ifndef TROCAR_CONSUMER_FACTS_DISK_TEXT_H
#define TROCAR_CONSUMER_FACTS_DISK_TEXT_H

#include "consumer/facts/facts_disks.h"

struct jsonw;

#define DISK_TEXT_BYTES	 224
#define DISK_TEXT_TOLD	 12 /* devices of one stack */
#define DISK_TEXT_MOUNTS 4  /* mount points of one device */

/*
 * Writes `stack`, with as many devices as fit into half of the line, the number of omitted ones,
 * and the reason if mount points are unknown. Writes nothing for a device that is not listed. `d`
 * may be NULL.
 */
void disk_text_write(const struct facts_disks *d, uint32_t major, uint32_t minor, struct jsonw *w);

/* Writes the device alone, as one element of `stack`. Writes nothing if it is not listed. */
void disk_text_write_one(const struct facts_disks *d, uint32_t major, uint32_t minor,
			 struct jsonw *w);

/* Writes the device's name, or "8:0" if it is not listed. `d` may be NULL. */
void disk_text_name(const struct facts_disks *d, uint32_t major, uint32_t minor,
		    char name[FACTS_DEVICES_BYTES]);

/* Writes the device's name as `device`, and its number as `number`; `device` as in the kernel. */
void disk_text_write_name(const struct facts_disks *d, uint32_t device, struct jsonw *w);
void disk_text_write_number(uint32_t device, struct jsonw *w);

/*
 * Writes the device's name and a place that a person knows: "dm-0 (vg0-data) at /srv", "vda at /
 * and /boot"; "8:0" if it is not listed. `d` may be NULL.
 */
void disk_text_say(const struct facts_disks *d, uint32_t major, uint32_t minor,
		   char text[DISK_TEXT_BYTES]);

#endif
