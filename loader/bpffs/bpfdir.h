/* SPDX-License-Identifier: BSD-2-Clause */
/* bpfdir.h: the private bpffs: its directory, its mount, its lock, and the way back. */
#ifndef TROCAR_LOADER_BPFDIR_H
#define TROCAR_LOADER_BPFDIR_H

#include <stdbool.h>
#include <sys/types.h>

/* Longest path: leaves room for every pin's name below PATH_MAX and for sun_path. */
#define BPFDIR_PATH_BYTES 256

/* One loader's hold on a bpf directory. */
struct bpfdir {
	const char *path; /* borrowed; absolute */
	int lock_fd;	  /* the parent directory, flock(2)ed; -1: none */
	int hold_fd;	  /* the bpffs itself, so that nobody unmounts it; -1: not open */
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
 * Takes the lock of `path` without changing anything. 0; -EBUSY: another loader is at work there;
 * -ENOENT: not even the parent directory exists (with `make_parent` it is made, mode 0755).
 */
int bpfdir_lock(const char *path, bool make_parent, struct bpfdir *ret_dir);

/*
 * Makes the directory and mounts bpffs on it unless it is one already; mode 0750, root:gid. Needs
 * CAP_SYS_ADMIN to mount. From then on nobody unmounts it, unless lazily. On failure everything
 * that was done is undone. 0 or -errno; -EBUSY: somebody ends each mount at once.
 */
int bpfdir_open(struct bpfdir *dir, gid_t gid);

/* Has the mount been taken away since bpfdir_open (umount --lazy, or another one over it)? */
bool bpfdir_is_lost(const struct bpfdir *dir);

/* Takes back what bpfdir_lock and bpfdir_open did, the lock included. First error, after trying
 * all. */
int bpfdir_undo(struct bpfdir *dir);

/* Lets go of the lock and leaves the rest as it is. */
void bpfdir_close(struct bpfdir *dir);

/* Is `path` on a bpffs? */
bool bpfdir_is_bpffs(const char *path);

/* Is something mounted right at `path`? False also when it does not exist. */
bool bpfdir_is_mount(const char *path);

/*
 * Removes the directory, and its parent when that is empty and looks just as bpfdir_lock would make
 * it again (root:root, 0755). -ENOTEMPTY, -errno of rmdir(2).
 */
int bpfdir_remove(const char *path);

#endif
