/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker/broker_pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "shared/rules/rules.h"
#include "shared/tools/cleanup.h"

/* FILEID_KERNFS of include/linux/exportfs.h: the eight bytes of the handle are the cgroup id. */
#define KERNFS_HANDLE 0xfe

int broker_pressure_cgroup(int mount_fd, uint64_t id)
{
	union {
		struct file_handle handle;
		uint8_t room[sizeof(struct file_handle) + sizeof(id)];
	} h = { .handle = { .handle_bytes = sizeof(id), .handle_type = KERNFS_HANDLE } };
	int fd;

	memcpy(h.room + offsetof(struct file_handle, f_handle), &id, sizeof(id));
	fd = open_by_handle_at(mount_fd, &h.handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int broker_pressure_open(int mount_fd, uint64_t root_id, uint64_t id, uint32_t resource)
{
	static const int flags = O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_close_ int dir_fd = -1, again_fd = -1;
	char name[64];
	int fd, r;

	if (id == root_id) {
		snprintf(name, sizeof(name), "/proc/pressure/%s", rules_resource_name(resource));
		fd = open(name, flags);
		return fd < 0 ? -errno : fd;
	}
	dir_fd = broker_pressure_cgroup(mount_fd, id);
	if (dir_fd < 0)
		return dir_fd;
	snprintf(name, sizeof(name), "%s.pressure", rules_resource_name(resource));
	fd = openat(dir_fd, name, flags);
	if (fd >= 0)
		return fd;
	r = -errno;
	if (r != -ENOENT)
		return r;
	/*
	 * Either the file is disabled or the cgroup was just removed: opening the handle again
	 * shows which.
	 */
	again_fd = broker_pressure_cgroup(mount_fd, id);
	return again_fd < 0 ? again_fd : r;
}
