/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_dir.h: a lock that root alone can take. It is flock(2) on a directory of mode 0700 at a path
 * of its own, which exists while the lock is held. flock(2) needs only an open descriptor, so the
 * lock must not be on an object that others can open. It is a directory, because bpffs has no plain
 * files.
 */
#ifndef TROCAR_LOADER_BPFFS_LOCK_DIR_H
#define TROCAR_LOADER_BPFFS_LOCK_DIR_H

#include <sys/types.h>

/*
 * Makes the directory and locks it. First moves away an existing object at `path` that is not a
 * directory of root with mode 0700: its new name ends in this process's id. 0: *ret_fd is the
 * caller's, to release by lock_dir_release; -EBUSY: another process holds the lock; -errno of
 * mkdir(2), open(2), rename(2).
 */
int lock_dir_take(const char *path, int *ret_fd);

/* Returns the process that holds the lock, 0 where /proc/locks does not name one. */
pid_t lock_dir_holder(const char *path);

/*
 * Removes the directory, and with it the lock; *fd becomes -1. Does nothing for a descriptor below
 * 0.
 */
void lock_dir_release(const char *path, int *fd);

#endif
