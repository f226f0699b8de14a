/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_dir.h: a lock that root alone can take. It is flock(2) on a directory of mode 0700 that lies
 * at a path of its own and is there for as long as the lock is held. flock(2) asks for nothing but
 * an open descriptor, so the lock must not be on an object that others can open. A directory,
 * because bpffs has no plain files.
 */
#ifndef TROCAR_LOADER_BPFFS_LOCK_DIR_H
#define TROCAR_LOADER_BPFFS_LOCK_DIR_H

#include <sys/types.h>

/*
 * Makes the directory and locks it. What stands at `path` and is not root's with mode 0700 is moved
 * away first, to a name with the process's number behind it. 0 and *ret_fd, the caller's to give to
 * lock_dir_release; -EBUSY: another process holds the lock; -errno of mkdir(2), open(2), rename(2).
 */
int lock_dir_take(const char *path, int *ret_fd);

/* Returns the process that holds the lock, 0 where /proc/locks does not name one. */
pid_t lock_dir_holder(const char *path);

/* Removes the directory, and with it the lock; *fd becomes -1. A descriptor below 0 is passed over.
 */
void lock_dir_release(const char *path, int *fd);

#endif
