/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "shared/cleanup.h"
#include "shared/macro.h"

#define BCACHEFS_MAGIC 0xca451a4eUL /* fs/bcachefs/bcachefs_format.h; not in linux/magic.h */
#define MINOR_BITS     20	    /* of the kernel's dev_t, include/linux/kdev_t.h */

static enum reason reason_of_open(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return REASON_NO_FILE;
	case EACCES:
	case EPERM:
		return REASON_NO_PERMISSION;
	case ELOOP: /* O_NOFOLLOW: d_path never ends in a symbolic link */
		return REASON_OTHER_FILE;
	case ENOMEM:
		return REASON_NO_MEMORY;
	default:
		return REASON_READ_ERROR;
	}
}

/* Whether stat(2) and the mapping may name different devices for one file on this file system. */
static bool device_is_vague(int fd)
{
	static const unsigned long magics[] = { BTRFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC,
						BCACHEFS_MAGIC };
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
		if ((unsigned long)fs.f_type == magics[i])
			return true;
	return false;
}

static bool device_matches(int fd, dev_t seen, uint64_t device)
{
	bool vague = device_is_vague(fd); /* asked always: a filter that forbids it shows at once */

	return vague || ((uint64_t)major(seen) << MINOR_BITS | minor(seen)) == device;
}

enum reason file_open(const char *path, uint64_t device, uint64_t inode,
		      struct elf_image *ret_image)
{
	_cleanup_close_ int fd = -1;
	struct stat before, now;

	if (path[0] != '/')
		return REASON_NO_FILE;
	if (fstatat(AT_FDCWD, path, &before, AT_SYMLINK_NOFOLLOW) < 0)
		return reason_of_open(errno);
	if (before.st_ino != inode)
		return REASON_OTHER_FILE;
	if (!S_ISREG(before.st_mode))
		return REASON_NOT_REGULAR;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return reason_of_open(errno);
	if (fstat(fd, &now) < 0)
		return REASON_READ_ERROR;
	if (now.st_ino != before.st_ino || now.st_dev != before.st_dev || !S_ISREG(now.st_mode) ||
	    !device_matches(fd, now.st_dev, device))
		return REASON_OTHER_FILE;
	if ((uint64_t)now.st_size > ELF_FILE_MAX)
		return REASON_TOO_LARGE;
	*ret_image = (struct elf_image){ .fd = TAKE_FD(fd), .bytes = (uint64_t)now.st_size };
	return REASON_NONE;
}
