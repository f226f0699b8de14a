/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts of /proc/PID/stat, status, cgroup, mountinfo, maps and fdinfo: names in them are of any
 * origin.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loader/broker/broker_peer.h"
#include "loader/broker/broker_process.h"
#include "shared/files/mounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A path below the mount: it leads nowhere else, and is part of the text. */
static void check_path(const char *text, size_t bytes, const char *path)
{
	if (path < text + strlen("0::/") || path > text + bytes || strchr(path, '\n'))
		abort();
	if (strncmp(path, "../", 3) == 0 || strcmp(path, "..") == 0)
		abort();
}

/* A type is a word of the text, behind the dash of its own line. */
static void check_mounts(const char *text, size_t bytes)
{
	size_t length = 0;
	const char *type = mounts_type(text, 23, &length);
	uint64_t id = 7;

	if (type && (type < text + 3 || memcmp(type - 3, " - ", 3) != 0 ||
		     type + length > text + bytes || memchr(type, ' ', length)))
		abort();
	if (mounts_id(text, &id) < 0 && id != 7)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + 1);
	const char *path = NULL;
	uint32_t uid = 7, pid = 7;
	uint64_t ticks = 7;
	int r;

	if (!text)
		return 0;
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	check_mounts(text, bytes);
	if (broker_peer_mapped(text) > bytes / strlen(" anon_inode:[perf_event]"))
		abort();
	if (broker_peer_number(text, "scm_fds: ") && !strstr(text, "scm_fds: "))
		abort();
	r = broker_process_stat(text, &ticks);
	if (r != 0 && (r != -EBADMSG || ticks != 7))
		abort();
	r = broker_process_status(text, &uid, &pid);
	if (r != 0 && (r != -EBADMSG || uid != 7 || pid != 7))
		abort();
	r = broker_process_cgroup_path(text, &path);
	if (r == 0)
		check_path(text, bytes, path);
	else if (r != -ENOENT || path)
		abort();
	free(text);
	return 0;
}
