/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mounts.h: finds the mount of an open file and the type of its file system from /proc alone.
 * statx(2) and statfs(2) would call the file system, and a user's process may serve that. Source:
 * proc(5) (mountinfo, fdinfo).
 */
#ifndef TROCAR_SHARED_FILES_MOUNTS_H
#define TROCAR_SHARED_FILES_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOUNTS_BYTES (4u << 20) /* hosts with thousands of containers have long mount tables */

/*
 * Finds the mount with that id in `text`, the text of /proc/PID/mountinfo. Returns its type,
 * *ret_bytes bytes within `text`; NULL: no such mount is listed.
 */
const char *mounts_type(const char *text, uint64_t mount_id, size_t *ret_bytes);

/* A part of the text, as the kernel writes it: escaped, and not terminated. */
struct mounts_text {
	const char *at;
	size_t bytes;
};

/* One mount. */
struct mounts_row {
	uint32_t major, minor;	  /* device of its file system; major 0: no block device */
	struct mounts_text root;  /* the part of the file system that is mounted; "/": all of it */
	struct mounts_text point; /* the mount point, in the namespace of the process */
	struct mounts_text type, source;
};

/*
 * Reads the next mount of `*at`, the text of /proc/PID/mountinfo, and moves `*at` after it. Skips
 * lines that are not mounts. False at the end. Fuzzed (tests/fuzz/shared/mounts.c).
 */
bool mounts_next(const char **at, struct mounts_row *ret_row);

/*
 * Writes the text without its escapes (\040), NUL-terminated, cut to `space` bytes (at least 1).
 * Returns the length of the whole text in bytes, as snprintf(3) does.
 */
size_t mounts_unescape(struct mounts_text text, char *to, size_t space);

/* Reads the mount id from `text`, the text of /proc/PID/fdinfo/N. 0; -EBADMSG: there is none. */
int mounts_id(const char *text, uint64_t *ret_mount_id);

/*
 * Reads the id of the mount that the open descriptor (O_PATH is enough) is on. While the descriptor
 * is open the kernel gives that id to no other mount. 0, or -errno of /proc.
 */
int mounts_id_of(int fd, uint64_t *ret_mount_id);

#endif
