/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/files/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shared/files/mounts.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

#define LOOKUPS_MAX 64 /* lookups of one path; each adds one component to the kernel's cache */

/* Checks that `fd` is a regular file: 0, -EINVAL if it is not, or another -errno. */
static int check_regular(int fd, struct stat *ret_stat)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_stat = st;
	return 0;
}

int regular_hold(int dir_fd, const char *path, bool follow, struct stat *ret_stat)
{
	_cleanup_close_ int fd = -1;
	int r;

	fd = openat(dir_fd, path, O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return -errno;
	r = check_regular(fd, ret_stat);
	return r < 0 ? r : TAKE_FD(fd);
}

/*
 * Opens `path` from the kernel's cache, without a request to any file system. -EAGAIN: a component
 * is not cached.
 */
static int hold_cached(const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_CACHED,
	};
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static bool is_fuse(const char *type, size_t bytes)
{
	static const char fuse[] = "fuse", dot[] = "fuse.", block[] = "fuseblk";

	return (bytes == strlen(fuse) && !memcmp(type, fuse, bytes)) ||
	       (bytes == strlen(block) && !memcmp(type, block, bytes)) ||
	       (bytes > strlen(dot) && !memcmp(type, dot, strlen(dot)));
}

/*
 * Checks the mount of `fd`. 0: no process serves its file system. -EREMOTE: FUSE, or a mount that
 * is not listed.
 */
static int check_mount(int fd)
{
	_cleanup_free_ char *mounts = NULL;
	const char *type;
	uint64_t id = 0;
	size_t bytes = 0;
	int r;

	r = mounts_id_of(fd, &id);
	if (r == 0)
		r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_BYTES, &mounts, &bytes);
	if (r < 0)
		return r;
	type = mounts_type(mounts, id, &bytes);
	return type && !is_fuse(type, bytes) ? 0 : -EREMOTE;
}

/*
 * Makes the kernel look up the first uncached component of `path`, after check_mount of its
 * directory. If a user mounts a file system over that component in the meantime, the lookup sends
 * it no request.
 */
static int look_up_next(const char *path)
{
	char above[PATH_MAX], name[NAME_MAX + 1];
	char *slash;

	if ((size_t)snprintf(above, sizeof(above), "%s", path) >= sizeof(above))
		return -ENAMETOOLONG;
	while ((slash = strrchr(above, '/'))) {
		_cleanup_close_ int dir_fd = -1, fd = -1;
		const char *rest = path + (slash - above) + 1;
		int r;

		*slash = '\0';
		dir_fd = hold_cached(*above ? above : "/", O_DIRECTORY);
		if (dir_fd == -EAGAIN)
			continue;
		r = dir_fd < 0 ? dir_fd : check_mount(dir_fd);
		if (r < 0)
			return r;
		if (strcspn(rest, "/") > NAME_MAX)
			return -ENAMETOOLONG;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(rest, "/"), rest);
		fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		return fd < 0 ? -errno : 0;
	}
	return -EAGAIN;
}

int regular_hold_local(const char *path, struct stat *ret_stat)
{
	_cleanup_close_ int fd = -EAGAIN;
	int r = 0;

	for (int i = 0; fd == -EAGAIN && r == 0 && i < LOOKUPS_MAX; i++) {
		fd = hold_cached(path, O_NOFOLLOW);
		if (fd == -EAGAIN)
			r = look_up_next(path);
	}
	if (r == 0)
		r = fd < 0 ? fd : check_mount(fd);
	if (r == 0)
		r = check_regular(fd, ret_stat);
	return r < 0 ? r : TAKE_FD(fd);
}

int regular_open(int held_fd)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", held_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0)
		return fd;
	/* held_fd is open, so ENOENT means that /proc is missing. */
	return errno == ENOENT ? -ENOTSUP : -errno;
}
