/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shared/files/regular.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define BCACHEFS_MAGIC 0xca451a4eUL /* fs/bcachefs/bcachefs_format.h; not in linux/magic.h */
#define MINOR_BITS     20	    /* in the kernel's dev_t, include/linux/kdev_t.h */

static enum reason map_open_error(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return REASON_NO_FILE;
	case EACCES:
	case EPERM:
		return REASON_NO_PERMISSION;
	case ELOOP: /* O_NOFOLLOW: a path from d_path never ends in a symbolic link */
		return REASON_OTHER_FILE;
	case ENOMEM:
		return REASON_NO_MEMORY;
	default:
		return REASON_READ_ERROR;
	}
}

/*
 * Returns whether the file system may report different devices for one file: one in stat(2),
 * another in the mapping.
 */
static bool is_device_vague(int fd)
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

struct file_identity elf_file_identity(const struct stat *st)
{
	return (struct file_identity){
		.device = (uint64_t)major(st->st_dev) << MINOR_BITS | minor(st->st_dev),
		.inode = st->st_ino,
		.bytes = (uint64_t)st->st_size,
		.changed_ns = (uint64_t)st->st_ctim.tv_sec * NSEC_PER_SEC + st->st_ctim.tv_nsec,
		.written_ns = (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec,
	};
}

static bool matches_device(int fd, const struct file_identity *seen,
			   const struct file_identity *identity)
{
	/* Called in any case, so that every test fails if the filter lacks fstatfs(2). */
	bool vague = is_device_vague(fd);

	return vague || seen->device == identity->device;
}

static enum reason hold_path(const char *path, bool follow, struct stat *ret_stat, int *ret_fd)
{
	int fd = follow ? regular_hold(AT_FDCWD, path, true, ret_stat)
			: regular_hold_local(path, ret_stat);

	if (fd < 0)
		return fd == -EINVAL ? REASON_NOT_REGULAR : map_open_error(-fd);
	*ret_fd = fd;
	return REASON_NONE;
}

static enum reason open_held_file(int held_fd, const struct stat *st, struct elf_image *ret_image)
{
	int fd = regular_open(held_fd);

	if (fd < 0)
		return map_open_error(-fd);
	*ret_image = (struct elf_image){ .fd = fd, .bytes = (uint64_t)st->st_size };
	return REASON_NONE;
}

enum reason elf_file_open_any(const char *path, bool follow, struct elf_image *ret_image)
{
	_cleanup_close_ int held_fd = -1;
	struct stat st;
	enum reason reason = hold_path(path, follow, &st, &held_fd);

	return reason == REASON_NONE ? open_held_file(held_fd, &st, ret_image) : reason;
}

/*
 * Returns whether size and mtime are unchanged. The ctime is not compared: unlink(2) and chmod(2)
 * change it, but not the content.
 */
static bool is_as_it_was(const struct file_identity *seen, const struct file_identity *identity)
{
	return seen->bytes == identity->bytes && seen->written_ns == identity->written_ns;
}

enum reason elf_file_open(const char *path, const struct file_identity *identity,
			  struct elf_image *ret_image, bool *ret_vague)
{
	_cleanup_close_ int held_fd = -1;
	struct file_identity seen;
	enum reason reason;
	struct stat st;

	if (path[0] != '/')
		return REASON_NO_FILE;
	reason = hold_path(path, false, &st, &held_fd);
	if (reason != REASON_NONE)
		return reason;
	seen = elf_file_identity(&st);
	if (seen.inode != identity->inode || !matches_device(held_fd, &seen, identity))
		return REASON_OTHER_FILE;
	*ret_vague = !is_as_it_was(&seen, identity);
	return open_held_file(held_fd, &st, ret_image);
}

enum reason elf_file_adopt(int fd, const struct file_identity *identity,
			   struct elf_image *ret_image, bool *ret_vague)
{
	struct file_identity seen;
	struct stat st;
	bool other;

	if (fstat(fd, &st) < 0)
		return REASON_READ_ERROR;
	if (!S_ISREG(st.st_mode))
		return REASON_NOT_REGULAR;
	seen = elf_file_identity(&st);
	other = seen.inode != identity->inode;
	if (other ? !is_device_vague(fd) : !matches_device(fd, &seen, identity))
		return REASON_OTHER_FILE;
	*ret_image = (struct elf_image){ .fd = fd, .bytes = (uint64_t)st.st_size };
	*ret_vague = other || !is_as_it_was(&seen, identity);
	return REASON_NONE;
}
