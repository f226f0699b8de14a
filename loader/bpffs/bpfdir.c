/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/bpffs/bpfdir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "loader/bpffs/lock_dir.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/log.h"

#ifndef BPF_FS_MAGIC
#define BPF_FS_MAGIC 0xcafe4a11
#endif

#define DIR_MODE    0750
#define PARENT_MODE 0755

#define LOCK_NAME_BYTES 6 /* "-lock" */

/* A service manager tries a bounded number of times to unmount (systemd: 32). */
#define HOLD_TRIES 64

/* The lock of `path`; no dot in the name, which bpffs refuses. */
static void write_lock_path(const char *path, char lock[BPFDIR_PATH_BYTES + LOCK_NAME_BYTES])
{
	snprintf(lock, BPFDIR_PATH_BYTES + LOCK_NAME_BYTES, "%s-lock", path);
}

static void release_lock(struct bpfdir *dir)
{
	char lock[BPFDIR_PATH_BYTES + LOCK_NAME_BYTES];

	if (dir->lock_fd < 0)
		return;
	write_lock_path(dir->path, lock);
	lock_dir_release(lock, &dir->lock_fd);
}

/* Writes everything before the last '/'; "/" for a directory in the root. */
static void write_parent(const char *path, char parent[BPFDIR_PATH_BYTES])
{
	size_t bytes = (size_t)(strrchr(path, '/') - path);

	if (bytes == 0)
		bytes = 1;
	memcpy(parent, path, bytes);
	parent[bytes] = '\0';
}

bool bpfdir_is_bpffs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && (unsigned long)fs.f_type == BPF_FS_MAGIC;
}

bool bpfdir_is_mount(const char *path)
{
	char parent[BPFDIR_PATH_BYTES];
	struct stat here, above;

	write_parent(path, parent);
	return lstat(path, &here) == 0 && stat(parent, &above) == 0 && here.st_dev != above.st_dev;
}

int bpfdir_lock(const char *path, bool make_parent, struct bpfdir *ret_dir)
{
	struct bpfdir dir = BPFDIR_NONE;
	char parent[BPFDIR_PATH_BYTES], lock[BPFDIR_PATH_BYTES + LOCK_NAME_BYTES];
	int r;

	dir.path = path;
	write_parent(path, parent);
	write_lock_path(path, lock);
	if (make_parent) {
		if (mkdir(parent, PARENT_MODE) == 0)
			dir.made_parent = true;
		else if (errno != EEXIST)
			return -errno;
		if (dir.made_parent && chmod(parent, PARENT_MODE) < 0) {
			r = -errno;
			rmdir(parent);
			return r;
		}
	}
	r = lock_dir_take(lock, &dir.lock_fd);
	if (r < 0) {
		if (dir.made_parent)
			rmdir(parent);
		return r;
	}
	*ret_dir = dir;
	return 0;
}

void bpfdir_log_unlocked(const char *path, int error)
{
	char lock[BPFDIR_PATH_BYTES + LOCK_NAME_BYTES];
	pid_t holder;

	write_lock_path(path, lock);
	holder = error == -EBUSY ? lock_dir_holder(lock) : 0;
	if (error != -EBUSY)
		log_error("%s: %s", lock, strerror(-error));
	else if (holder)
		log_error("%s: another trocar-loader holds the lock, process %d", path,
			  (int)holder);
	else
		log_error("%s: another trocar-loader holds the lock %s", path, lock);
}

/*
 * Sets owner root, group gid, mode 0750, and stores the old values. chown is first, because only
 * the owner may chmod.
 */
static int take_ownership(struct bpfdir *dir, gid_t gid)
{
	struct stat st;

	if (fstat(dir->hold_fd, &st) < 0)
		return -errno;
	dir->uid = st.st_uid;
	dir->gid = st.st_gid;
	dir->mode = st.st_mode & 07777;
	dir->changed = true;
	if (fchownat(dir->hold_fd, "", 0, gid, AT_EMPTY_PATH) < 0 ||
	    fchmod(dir->hold_fd, DIR_MODE) < 0)
		return -errno;
	return 0;
}

/* Opens the bpffs that is mounted at the path. -EAGAIN: no bpffs is mounted there. */
static int open_mounted(struct bpfdir *dir)
{
	_cleanup_close_ int fd = -1;
	struct statfs fs;

	fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	if ((unsigned long)fs.f_type != BPF_FS_MAGIC)
		return -EAGAIN;
	dir->hold_fd = TAKE_FD(fd);
	return 0;
}

/*
 * Mounts a bpffs unless there is one, and opens it. A service manager may be unmounting its own
 * idle mount here: a mount with an open descriptor is busy and stays (umount2(2)), and a mount that
 * it has just unmounted is mounted again.
 */
static int mount_and_open(struct bpfdir *dir)
{
	int r = open_mounted(dir);

	for (int i = 0; i < HOLD_TRIES && r == -EAGAIN; i++) {
		if (mount("bpffs", dir->path, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			  "mode=0700") < 0)
			return -errno;
		r = open_mounted(dir);
		dir->mounted = r != -EAGAIN;
	}
	return r == -EAGAIN ? -EBUSY : r;
}

static int make_dir(struct bpfdir *dir, gid_t gid)
{
	int r;

	if (mkdir(dir->path, 0700) == 0)
		dir->made_dir = true;
	else if (errno != EEXIST)
		return -errno;
	r = mount_and_open(dir);
	return r < 0 ? r : take_ownership(dir, gid);
}

bool bpfdir_is_lost(const struct bpfdir *dir)
{
	struct stat held, there;

	if (dir->hold_fd < 0)
		return false;
	return fstat(dir->hold_fd, &held) < 0 || lstat(dir->path, &there) < 0 ||
	       held.st_dev != there.st_dev || held.st_ino != there.st_ino;
}

/* Undoes make_dir; parent and lock stay. */
static int undo_dir(struct bpfdir *dir)
{
	bool lost = bpfdir_is_lost(dir);
	int r = 0;

	if (dir->changed && !dir->mounted && !dir->made_dir) {
		if (fchmod(dir->hold_fd, dir->mode) < 0 ||
		    fchownat(dir->hold_fd, "", dir->uid, dir->gid, AT_EMPTY_PATH) < 0)
			r = -errno;
	}
	dir->changed = false;
	cleanup_close(&dir->hold_fd);
	dir->hold_fd = -1;
	if (dir->mounted && !lost && umount2(dir->path, UMOUNT_NOFOLLOW) < 0)
		return -errno;
	dir->mounted = false;
	if (dir->made_dir && rmdir(dir->path) < 0)
		return -errno;
	dir->made_dir = false;
	return r;
}

int bpfdir_open(struct bpfdir *dir, gid_t gid)
{
	int r;

	r = make_dir(dir, gid);
	if (r < 0)
		undo_dir(dir);
	return r;
}

int bpfdir_undo(struct bpfdir *dir)
{
	char parent[BPFDIR_PATH_BYTES];
	int r;

	if (dir->lock_fd < 0)
		return 0;
	r = undo_dir(dir);
	write_parent(dir->path, parent);
	bpfdir_close(dir);
	if (r == 0 && dir->made_parent && rmdir(parent) < 0 && errno != ENOTEMPTY)
		r = -errno;
	return r;
}

void bpfdir_close(struct bpfdir *dir)
{
	cleanup_close(&dir->hold_fd);
	dir->hold_fd = -1;
	release_lock(dir);
}

int bpfdir_remove(struct bpfdir *dir)
{
	char parent[BPFDIR_PATH_BYTES];
	struct stat st;

	if (rmdir(dir->path) < 0)
		return -errno;
	release_lock(dir);
	write_parent(dir->path, parent);
	if (lstat(parent, &st) == 0 && st.st_uid == 0 && st.st_gid == 0 &&
	    (st.st_mode & 07777) == PARENT_MODE)
		rmdir(parent); /* ENOTEMPTY: it holds files of others */
	return 0;
}
