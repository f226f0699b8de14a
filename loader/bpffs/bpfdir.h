/* SPDX-License-Identifier: BSD-2-Clause */
/* bpfdir.h: makes, locks, mounts and removes the directory of the private bpffs. */
#ifndef TROCAR_LOADER_BPFFS_BPFDIR_H
#define TROCAR_LOADER_BPFFS_BPFDIR_H

#include <stdbool.h>
#include <sys/types.h>

/* Longest path; with a pin's name appended, it stays below PATH_MAX. */
#define BPFDIR_PATH_BYTES 256

/* The state of one loader at one bpf directory. */
struct bpfdir {
	const char *path; /* borrowed; absolute */
	int lock_fd;	  /* of lock_dir.h; -1: none */
	int hold_fd;	  /* the bpffs itself: while it is open, an unmount fails; -1: not open */
	bool made_parent;
	bool made_dir;
	bool mounted; /* by us */
	bool changed; /* owner or mode; `uid`, `gid`, `mode` are the old ones */
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

#define BPFDIR_NONE ((struct bpfdir){ .lock_fd = -1, .hold_fd = -1 })

/*
 * Locks `path` against other loaders by a directory next to it, PATH-lock, and changes nothing
 * else. With `make_parent` it makes a missing parent directory, mode 0755. 0; -EBUSY: another
 * loader holds the lock; -ENOENT: the parent directory does not exist.
 */
int bpfdir_lock(const char *path, bool make_parent, struct bpfdir *ret_dir);

/* Logs why bpfdir_lock failed with `error` (negative), and which process holds the lock. */
void bpfdir_log_unlocked(const char *path, int error);

/*
 * Makes the directory, mounts bpffs on it unless one is mounted, and sets mode 0750, root:gid.
 * Needs CAP_SYS_ADMIN to mount. Keeps the bpffs open, so that only a lazy unmount (umount --lazy)
 * can take it away. On failure it undoes everything that it did. 0 or -errno; -EBUSY: each new
 * mount disappeared at once.
 */
int bpfdir_open(struct bpfdir *dir, gid_t gid);

/*
 * Returns whether the mount has been taken away since bpfdir_open (umount --lazy, or another one
 * over it).
 */
bool bpfdir_is_lost(const struct bpfdir *dir);

/* Undoes bpfdir_lock and bpfdir_open. Continues after an error; returns the first one. */
int bpfdir_undo(struct bpfdir *dir);

/* Closes the descriptors and releases the lock. Directory and mount stay. */
void bpfdir_close(struct bpfdir *dir);

/* Returns whether `path` is on a bpffs. */
bool bpfdir_is_bpffs(const char *path);

/* Returns whether `path` itself is a mount point. False also if it does not exist. */
bool bpfdir_is_mount(const char *path);

/*
 * Removes the directory and releases the lock; also removes the parent directory if that is empty
 * and has the owner and mode that bpfdir_lock gives it (root:root, 0755). -ENOTEMPTY, -errno of
 * rmdir(2): the lock is still held.
 */
int bpfdir_remove(struct bpfdir *dir);

#endif
