/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts of the kernel's files about a cgroup. The first byte selects it: a row of facts.def, then
 * /proc/PID/cgroup, then /proc/partitions, the mount table and /proc/swaps of a machine with disks,
 * then /proc/PID/limits.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/facts/disk_text.h"
#include "consumer/facts/facts_files.h"
#include "consumer/facts/facts_place.h"
#include "shared/json/jsonw.h"

#define PATH_BYTES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_file(enum facts_file file, const char *text, size_t bytes)
{
	struct facts f = {};

	facts_parse(&f, file, text, bytes);
	if (f.n_devices > FACTS_DEVICES || (f.devices_more && f.n_devices < FACTS_DEVICES) ||
	    f.has >> FACT_COUNT_)
		abort();
	/* A file speaks of its own source only. */
	for (int i = 0; i < FACT_COUNT_; i++)
		if (f.has & 1ULL << i &&
		    facts_row((enum fact)i)->source != facts_file(file)->source)
			abort();
	if (f.n_devices && facts_file(file)->source != FACTS_IO)
		abort();
}

static void check_place(const char *text, size_t bytes)
{
	char path[PATH_BYTES], before[PATH_BYTES];

	memset(path, 0xa5, sizeof(path));
	memcpy(before, path, sizeof(path));
	if (!facts_place_parse(text, bytes, "memory", path, sizeof(path))) {
		if (memcmp(path, before, sizeof(path)))
			abort();
		return;
	}
	/* The path leads nowhere but down from the mount. */
	if (!memchr(path, '\0', sizeof(path)) || path[0] != '/' || strstr(path, "/../") ||
	    strchr(path, '\n'))
		abort();
}

static void check_devices(const char *text, size_t bytes)
{
	struct facts_devices d = {};
	char name[FACTS_DEVICES_BYTES];

	if (facts_devices_parse(&d, text, bytes) < 0 || d.count > FACTS_DEVICES_MAX)
		abort();
	for (size_t i = 0; i < d.count; i++) {
		facts_devices_name(&d, d.rows[i].major, d.rows[i].minor, name);
		if (!memchr(name, '\0', sizeof(name)) || !name[0])
			abort();
	}
	facts_devices_done(&d);
}

static void check_said(const struct facts_disks *d)
{
	char says[DISK_TEXT_BYTES];
	struct jsonw w;

	jsonw_init(&w, 4096);
	jsonw_object(&w, NULL);
	for (uint32_t minor = 0; minor < 3; minor++) {
		memset(says, 0xa5, sizeof(says));
		disk_text_say(d, 254, minor, says);
		if (!memchr(says, '\0', sizeof(says)) || strncmp(says, "vda", 3) != 0)
			abort();
	}
	disk_text_write(d, 254, 0, &w);
	jsonw_object_end(&w);
	if (jsonw_end(&w) < 0 && jsonw_end(&w) != -ENOMEM)
		abort();
	jsonw_done(&w);
}

/* The text with its end. strndup() of clang's sanitizers reads one byte behind it. */
static char *copy(const char *text, size_t bytes)
{
	char *copied = calloc(1, bytes + 1);

	if (copied)
		memcpy(copied, text, bytes);
	return copied;
}

/* vda2 stands on vda1, and that on vda. */
static void check_disks(const char *text, size_t bytes, bool swaps)
{
	static const char devices[] = "254 0 9 vda\n254 1 9 vda1\n254 2 9 vda2\n";
	struct facts_disk items[3] = {
		{},
		{ .kind = FACTS_DISK_PARTITION, .n_below = 1 },
		{ .kind = FACTS_DISK_DM, .below = { 1 }, .n_below = 1 },
	};
	struct facts_disks d = { .items = items };

	if (facts_devices_parse(&d.devices, devices, strlen(devices)) < 0)
		return;
	items[2].name = copy(text, bytes);
	d.mounts = copy(text, bytes);
	if (swaps)
		facts_disks_add_swaps(&d, text, bytes);
	if (items[2].name && d.mounts)
		check_said(&d);
	free(items[2].name);
	free(d.mounts);
	facts_devices_done(&d.devices);
}

static void check_limits(const char *text, size_t bytes)
{
	uint64_t max = 7;

	if (!facts_files_parse(text, bytes, &max) && max != 7)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const char *text = (const char *)data + 1;
	unsigned int which;

	if (!bytes)
		return 0;
	which = data[0] % (FACTS_FILE_COUNT_ + 5);
	if (which < FACTS_FILE_COUNT_)
		check_file((enum facts_file)which, text, bytes - 1);
	else if (which == FACTS_FILE_COUNT_)
		check_place(text, bytes - 1);
	else if (which == FACTS_FILE_COUNT_ + 1)
		check_devices(text, bytes - 1);
	else if (which == FACTS_FILE_COUNT_ + 4)
		check_limits(text, bytes - 1);
	else
		check_disks(text, bytes - 1, which == FACTS_FILE_COUNT_ + 3);
	return 0;
}
