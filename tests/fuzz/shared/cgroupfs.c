/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of mountinfo: anything, however cut; a found mount is a terminated text that fits. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/files/cgroupfs.h"

#define MOUNT_BYTES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	enum cgroup_mode mode = CGROUP_NONE;
	char mount[MOUNT_BYTES], *text = malloc(bytes + 1);
	int r;

	if (!text)
		return 0;
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	r = cgroupfs_find(text, mount, sizeof(mount), &mode);
	if (r == 0 && (mode > CGROUP_HYBRID || strnlen(mount, sizeof(mount)) == sizeof(mount)))
		abort();
	if (r == -ENOENT && mode < CGROUP_V1_ONLY)
		abort();
	if (!cgroupfs_mode_name(mode))
		abort();
	free(text);
	return 0;
}
