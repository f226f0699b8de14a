/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * regular.h: opens only regular files at paths that a user chose: no device with a driver that acts
 * on open(2), no FIFO with a writer that would wake. A user may replace the file between a check of
 * its path and an open. So these functions first hold the file by a descriptor that does not open
 * it (O_PATH, open(2)), check it, and then open that same file.
 */
#ifndef TROCAR_SHARED_FILES_REGULAR_H
#define TROCAR_SHARED_FILES_REGULAR_H

#include <stdbool.h>
#include <sys/stat.h>

/*
 * Holds the regular file at `path` (relative to `dir_fd`; AT_FDCWD: to the current directory); with
 * `follow` also through a symbolic link at the end of the path. Returns an O_PATH descriptor, which
 * the caller closes, with its fstat(2); -EINVAL: not a regular file; -errno of open(2).
 */
int regular_hold(int dir_fd, const char *path, bool follow, struct stat *ret_stat);

/*
 * As regular_hold without `follow`, for an absolute path of a process that may be hostile: never
 * waits for a process that a user controls. It looks up uncached components one at a time, only in
 * directories of file systems that no process serves, and makes no call on the file before it knows
 * the file's mount. -EREMOTE: FUSE, or a mount that is in no table; -EAGAIN: the path has links
 * that cannot be followed in this way. Source: openat2(2), RESOLVE_CACHED; fs/namei.c
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
