/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/bpffs/lock_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"

#define LOCK_MODE 0700

/* Each failed try met another process that made, removed or replaced the directory. */
#define TRIES 64

static bool is_ours(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_uid == geteuid() && (st->st_mode & 0777) == LOCK_MODE;
}

/* In a sticky directory only root can move a user's object. */
static int move_away(const char *path)
{
	char aside[PATH_MAX];
	int n = snprintf(aside, sizeof(aside), "%s-%d", path, (int)getpid());

	if (n < 0 || (size_t)n >= sizeof(aside))
		return -ENAMETOOLONG;
	return rename(path, aside) < 0 && errno != ENOENT ? -errno : 0;
}

/* 0; -EAGAIN: try again; -EBUSY: it is locked; -errno. */
static int try_to_take(const char *path, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	struct stat held, there;

	if (mkdir(path, LOCK_MODE) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT			    ? -EAGAIN
		       : errno == ENOTDIR || errno == ELOOP ? move_away(path) ?: -EAGAIN
							    : -errno;
	if (fstat(fd, &held) < 0)
		return -errno;
	if (!is_ours(&held))
		return move_away(path) ?: -EAGAIN;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	/* The holder may have removed it between our open and our lock. */
	if (lstat(path, &there) < 0 || there.st_dev != held.st_dev || there.st_ino != held.st_ino)
		return -EAGAIN;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int lock_dir_take(const char *path, int *ret_fd)
{
	int r = -EAGAIN;

	for (int i = 0; i < TRIES && r == -EAGAIN; i++)
		r = try_to_take(path, ret_fd);
	return r == -EAGAIN ? -EBUSY : r;
}

/* Reads a row of /proc/locks: "1: FLOCK ADVISORY WRITE 1234 00:1a:5678 0 EOF", proc_locks(5). */
static bool read_row(char *row, pid_t *ret_pid, dev_t *ret_device, ino_t *ret_inode)
{
	char *fields[6], *rest = NULL, *end;
	unsigned long first, second;

	for (int i = 0; i < 6; i++) {
		fields[i] = strtok_r(i ? NULL : row, " ", &rest);
		if (!fields[i])
			return false;
	}
	if (strcmp(fields[1], "FLOCK") != 0 || strcmp(fields[3], "WRITE") != 0)
		return false;
	*ret_pid = (pid_t)strtol(fields[4], NULL, 10);
	first = strtoul(fields[5], &end, 16);
	if (*end != ':')
		return false;
	second = strtoul(end + 1, &end, 16);
	if (*end != ':')
		return false;
	*ret_device = makedev((unsigned int)first, (unsigned int)second);
	*ret_inode = strtoul(end + 1, NULL, 10);
	return true;
}

pid_t lock_dir_holder(const char *path)
{
	_cleanup_fclose_ FILE *locks = fopen("/proc/locks", "re");
	char row[256];
	struct stat st;
	dev_t device;
	ino_t inode;
	pid_t pid;

	if (!locks || lstat(path, &st) < 0)
		return 0;
	while (fgets(row, sizeof(row), locks))
		if (read_row(row, &pid, &device, &inode) && device == st.st_dev &&
		    inode == st.st_ino)
			return pid;
	return 0;
}

void lock_dir_release(const char *path, int *fd)
{
	if (*fd >= 0)
		rmdir(path);
	cleanup_close(fd);
	*fd = -1;
}
