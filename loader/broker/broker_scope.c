/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker/broker_scope.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/broker/broker_pressure.h"
#include "shared/abi/abi.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

bool broker_scope_holds(int scope_fd, const char *path)
{
	struct cgroup_key key = { 0 };
	size_t bytes = MIN(strlen(path), (size_t)CGROUP_PREFIX_BYTES - 1);
	uint32_t one;

	if (scope_fd < 0)
		return true;
	key.prefix_bits = 8 * (uint32_t)bytes;
	memcpy(key.path, path, bytes);
	return bpf_map_lookup_elem(scope_fd, &key, &one) == 0;
}

/* Reads the path of an open directory. 0 or -errno. */
static int read_path(int fd, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlinkat(AT_FDCWD, link, path, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return 0;
}

bool broker_scope_holds_id(int scope_fd, int mount_fd, uint64_t root_id, uint64_t id)
{
	char mount[PATH_MAX], path[PATH_MAX];
	_cleanup_close_ int fd = -1;
	size_t bytes;

	if (scope_fd < 0)
		return true;
	if (id == root_id)
		return broker_scope_holds(scope_fd, "/");
	fd = broker_pressure_cgroup(mount_fd, id);
	if (fd < 0 || read_path(fd, path) < 0 || read_path(mount_fd, mount) < 0)
		return false;
	bytes = strlen(mount);
	return strncmp(path, mount, bytes) == 0 && path[bytes] == '/' &&
	       broker_scope_holds(scope_fd, path + bytes);
}
