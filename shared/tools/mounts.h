/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mounts.h: on what mount does an open file lie, and of which type is that? Told by the kernel
 * alone: statx(2) and statfs(2) would ask the file system, and who answers for a file system may be
 * a process like any other. Source: proc(5) (mountinfo, fdinfo).
 */
#ifndef TROCAR_SHARED_TOOLS_MOUNTS_H
#define TROCAR_SHARED_TOOLS_MOUNTS_H

#include <stddef.h>
#include <stdint.h>

#define MOUNTS_BYTES (4u << 20) /* hosts with thousands of containers have long mount tables */

/*
 * The type of the mount with that id in `text`, the text of /proc/PID/mountinfo: *ret_bytes of it,
 * within `text`. NULL: no such mount is listed.
 */
const char *mounts_type(const char *text, uint64_t mount_id, size_t *ret_bytes);

/* The mount id in `text`, the text of /proc/PID/fdinfo/N. -EBADMSG: there is none. */
int mounts_id(const char *text, uint64_t *ret_mount_id);

/* The id of the mount that the descriptor (O_PATH is enough) holds: it is no other's as long as
 * that is open. 0, or -errno of /proc. */
int mounts_id_of(int fd, uint64_t *ret_mount_id);

#endif
