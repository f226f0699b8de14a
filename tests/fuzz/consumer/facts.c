/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts of the kernel's files about a cgroup. The first byte says which: a row of facts.def, then
 * /proc/PID/cgroup, then /proc/partitions.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/facts/facts_devices.h"
#include "consumer/facts/facts_place.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const char *text = (const char *)data + 1;
	unsigned int which;

	if (!bytes)
		return 0;
	which = data[0] % (FACTS_FILE_COUNT_ + 2);
	if (which < FACTS_FILE_COUNT_)
		check_file((enum facts_file)which, text, bytes - 1);
	else if (which == FACTS_FILE_COUNT_)
		check_place(text, bytes - 1);
	else
		check_devices(text, bytes - 1);
	return 0;
}
