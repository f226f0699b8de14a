/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * regular.h: opens regular files at paths that somebody else chose, and nothing else: no device
 * whose driver would act, no FIFO whose writer would wake. Between a look at a path and an open of
 * it its owner may put another file there; so the file is held first, by a descriptor that opens
 * nothing (O_PATH, open(2)), and that very file is opened.
 */
#ifndef TROCAR_SHARED_TOOLS_REGULAR_H
#define TROCAR_SHARED_TOOLS_REGULAR_H

#include <stdbool.h>
#include <sys/stat.h>

/*
 * Holds the regular file at `path` (relative to `dir_fd`, AT_FDCWD for none); `follow` follows a
 * symbolic link at its end. An O_PATH descriptor, the caller's to close, and what fstat(2) says of
 * it; -EINVAL for what is no regular file, or -errno of open(2).
 */
int regular_hold(int dir_fd, const char *path, bool follow, struct stat *ret_stat);

/*
 * As regular_hold without a link followed, for an absolute path of a process that may be hostile:
 * nobody is waited for whom a user may keep from answering. What is not in the kernel's cache is
 * looked up a component at a time, in directories of file systems that no process serves; of the
 * file nothing is asked before its mount is known. -EREMOTE: FUSE, or a mount that is in no table;
 * -EAGAIN: links on the way that cannot be followed so. Source: openat2(2), RESOLVE_CACHED;
 * fs/namei.c (LOOKUP_CACHED).
 */
int regular_hold_local(const char *path, struct stat *ret_stat);

/*
 * Opens the file that regular_hold has given, for reading and without waiting (O_CLOEXEC,
 * O_NONBLOCK). A descriptor, the caller's to close; -ENOTSUP without /proc, or -errno of open(2).
 */
int regular_open(int held_fd);

#endif
