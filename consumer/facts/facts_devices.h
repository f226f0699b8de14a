/* SPDX-License-Identifier: BSD-2-Clause */
/* facts_devices.h: names of block devices, from /proc/partitions. Any thread. */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_DEVICES_H
#define TROCAR_CONSUMER_FACTS_FACTS_DEVICES_H

#include <stddef.h>
#include <stdint.h>

#define FACTS_DEVICES_BYTES 32 /* of a name: DISK_NAME_LEN */
#define FACTS_DEVICES_MAX   512

struct facts_devices {
	struct facts_devices_row {
		uint32_t major, minor;
		char name[FACTS_DEVICES_BYTES];
	} * rows; /* owned */
	size_t count;
};

/*
 * Adds the rows of `text`, the content of /proc/partitions (block/genhd.c). 0 or -ENOMEM. Fuzzed
 * (tests/fuzz/consumer/facts.c). Release with facts_devices_done.
 */
int facts_devices_parse(struct facts_devices *d, const char *text, size_t bytes);
void facts_devices_done(struct facts_devices *d);

/* Writes the device's name, or "8:0" if it has none. */
void facts_devices_name(const struct facts_devices *d, uint32_t major, uint32_t minor,
			char name[FACTS_DEVICES_BYTES]);

#endif
