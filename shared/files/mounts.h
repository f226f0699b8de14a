/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mounts.h: finds the mount of an open file and the type of its file system from /proc alone.
 * statx(2) and statfs(2) would ask the file system, and a process of a user may answer for that.
 * Source: proc(5) (mountinfo, fdinfo).
 */
#ifndef TROCAR_SHARED_FILES_MOUNTS_H
#define TROCAR_SHARED_FILES_MOUNTS_H

#include <stddef.h>
#include <stdint.h>

#define MOUNTS_BYTES (4u << 20) /* hosts with thousands of containers have long mount tables */

/*
 * Finds the mount with that id in `text`, the text of /proc/PID/mountinfo. Returns its type,
 * *ret_bytes bytes within `text`; NULL: no such mount is listed.
 */
const char *mounts_type(const char *text, uint64_t mount_id, size_t *ret_bytes);

/* Reads the mount id from `text`, the text of /proc/PID/fdinfo/N. 0; -EBADMSG: there is none. */
int mounts_id(const char *text, uint64_t *ret_mount_id);

/*
 * Reads the id of the mount that the open descriptor (O_PATH is enough) is on. While it is open the
 * kernel gives that id to no other mount. 0, or -errno of /proc.
 */
int mounts_id_of(int fd, uint64_t *ret_mount_id);

#endif
