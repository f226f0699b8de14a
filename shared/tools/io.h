/* SPDX-License-Identifier: BSD-2-Clause */
/* io.h: whole files in and out. */
#ifndef TROCAR_SHARED_TOOLS_IO_H
#define TROCAR_SHARED_TOOLS_IO_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Reads `path` (relative to `dir_fd`, AT_FDCWD for none) whole into a new buffer with a NUL behind
 * it; the caller frees. O_CLOEXEC|O_NOCTTY. 0, -EFBIG when longer than max_bytes, or what open(2)
 * and read(2) say.
 */
int io_read_file(int dir_fd, const char *path, size_t max_bytes, char **ret_data,
		 size_t *ret_bytes);

/* Reads from `fd` until its end, as io_read_file. */
int io_read_fd(int fd, size_t max_bytes, char **ret_data, size_t *ret_bytes);

/* Writes all of `data`, whatever write(2) takes at a time. 0 or -errno. */
int io_write_full(int fd, const void *data, size_t bytes);

#endif
