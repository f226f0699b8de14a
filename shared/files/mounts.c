/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/files/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/parse.h"

#define FDINFO_BYTES 4096

/*
 * Finds the type, which follows " - ". A path cannot contain that, because the kernel writes its
 * spaces as \\040. See proc(5).
 */
static const char *line_type(const char *line, size_t *ret_bytes)
{
	const char *dash = memmem(line, strcspn(line, "\n"), " - ", 3);

	if (!dash)
		return NULL;
	dash += 3;
	*ret_bytes = strcspn(dash, " \n");
	return dash;
}

const char *mounts_type(const char *text, uint64_t mount_id, size_t *ret_bytes)
{
	char want[24];
	size_t bytes = (size_t)snprintf(want, sizeof(want), "%" PRIu64 " ", mount_id);

	while (*text) {
		if (strncmp(text, want, bytes) == 0)
			return line_type(text, ret_bytes);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return NULL;
}

int mounts_id(const char *text, uint64_t *ret_mount_id)
{
	static const char key[] = "\nmnt_id:\t";
	const char *at = strstr(text, key);
	char number[24];
	size_t bytes;

	if (!at)
		return -EBADMSG;
	at += strlen(key);
	bytes = strcspn(at, "\n");
	if (bytes >= sizeof(number))
		return -EBADMSG;
	memcpy(number, at, bytes);
	number[bytes] = '\0';
	return parse_u64(number, 0, UINT64_MAX, ret_mount_id) < 0 ? -EBADMSG : 0;
}

int mounts_id_of(int fd, uint64_t *ret_mount_id)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	size_t bytes;
	int r;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	r = io_read_file(AT_FDCWD, path, FDINFO_BYTES, &text, &bytes);
	return r < 0 ? r : mounts_id(text, ret_mount_id);
}
