/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * regular.h: opens only regular files at paths that a user chose: no device with a driver that acts
 * on open(2), no FIFO with a writer that would wake. Between a check of a path and an open of it a
 * user may put another file there. So these functions first hold the file with a descriptor that
 * opens nothing (O_PATH, open(2)), check it, and then open that very file.
 */
#ifndef TROCAR_SHARED_FILES_REGULAR_H
#define TROCAR_SHARED_FILES_REGULAR_H

#include <stdbool.h>
#include <sys/stat.h>

/*
 * Holds the regular file at `path` (relative to `dir_fd`, AT_FDCWD for none); `follow` follows a
 * symbolic link at its end. Returns an O_PATH descriptor, which the caller closes, with its
 * fstat(2); -EINVAL: not a regular file; -errno of open(2).
 */
int regular_hold(int dir_fd, const char *path, bool follow, struct stat *ret_stat);

/*
 * As regular_hold without `follow`, for an absolute path of a process that may be hostile: never
 * waits for a process that a user controls. It looks up components that the kernel has not cached
 * one at a time, in directories of file systems that no process serves, and asks nothing of the
 * file before it knows the file's mount. -EREMOTE: FUSE, or a mount that is in no table; -EAGAIN:
 * links on the way that cannot be followed so. Source: openat2(2), RESOLVE_CACHED; fs/namei.c
 * (LOOKUP_CACHED).
 */
int regular_hold_local(const char *path, struct stat *ret_stat);

/*
 * Opens the file that regular_hold returned, for reading and without waiting (O_CLOEXEC,
 * O_NONBLOCK). Returns a descriptor, which the caller closes; -ENOTSUP without /proc; -errno of
 * open(2).
 */
int regular_open(int held_fd);

#endif
