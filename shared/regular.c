/* SPDX-License-Identifier: BSD-2-Clause */
#include "regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "cleanup.h"

int regular_hold(int dir_fd, const char *path, bool follow, struct stat *ret_stat)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	fd = openat(dir_fd, path, O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_stat = st;
	return TAKE_FD(fd);
}

int regular_open(int held_fd)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", held_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0)
		return fd;
	/* The descriptor is there: what is not is /proc. */
	return errno == ENOENT ? -ENOTSUP : -errno;
}
