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
#include <unistd.h>

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

static enum reason open_checked(const char *path, bool follow, const struct stat *before,
				struct stat *now, struct elf_image *ret_image)
{
	_cleanup_close_ int fd = -1;

	if (!S_ISREG(before->st_mode))
		return REASON_NOT_REGULAR;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return reason_of_open(errno);
	if (fstat(fd, now) < 0)
		return REASON_READ_ERROR;
	if (now->st_ino != before->st_ino || now->st_dev != before->st_dev ||
	    !S_ISREG(now->st_mode))
		return REASON_OTHER_FILE;
	if ((uint64_t)now->st_size > ELF_FILE_MAX)
		return REASON_TOO_LARGE;
	*ret_image = (struct elf_image){ .fd = TAKE_FD(fd), .bytes = (uint64_t)now->st_size };
	return REASON_NONE;
}

enum reason file_open_any(const char *path, bool follow, struct elf_image *ret_image)
{
	struct stat before, now;

	if (fstatat(AT_FDCWD, path, &before, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return reason_of_open(errno);
	return open_checked(path, follow, &before, &now, ret_image);
}

enum reason file_open(const char *path, uint64_t device, uint64_t inode,
		      struct elf_image *ret_image)
{
	struct elf_image image = { .fd = -1 };
	struct stat before, now;
	enum reason reason;

	if (path[0] != '/')
		return REASON_NO_FILE;
	if (fstatat(AT_FDCWD, path, &before, AT_SYMLINK_NOFOLLOW) < 0)
		return reason_of_open(errno);
	if (before.st_ino != inode)
		return REASON_OTHER_FILE;
	reason = open_checked(path, false, &before, &now, &image);
	if (reason == REASON_NONE && !device_matches(image.fd, now.st_dev, device)) {
		close(image.fd);
		return REASON_OTHER_FILE;
	}
	if (reason == REASON_NONE)
		*ret_image = image;
	return reason;
}

enum reason file_adopt(int fd, uint64_t device, uint64_t inode, struct elf_image *ret_image,
		       bool *ret_vague)
{
	struct stat st;
	bool other;

	if (fstat(fd, &st) < 0)
		return REASON_READ_ERROR;
	if (!S_ISREG(st.st_mode))
		return REASON_NOT_REGULAR;
	other = st.st_ino != inode;
	if (other ? !device_is_vague(fd) : !device_matches(fd, st.st_dev, device))
		return REASON_OTHER_FILE;
	if ((uint64_t)st.st_size > ELF_FILE_MAX)
		return REASON_TOO_LARGE;
	*ret_image = (struct elf_image){ .fd = fd, .bytes = (uint64_t)st.st_size };
	*ret_vague = other;
	return REASON_NONE;
}
