/* SPDX-License-Identifier: BSD-2-Clause */
/* io.h: reads and writes whole files. */
#ifndef TROCAR_SHARED_TOOLS_IO_H
#define TROCAR_SHARED_TOOLS_IO_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Reads `path` (relative to `dir_fd`, AT_FDCWD: to the current directory) whole into a new buffer
 * with a NUL after the text, which the caller frees. Opens with O_CLOEXEC|O_NOCTTY. 0; -EFBIG when
 * the file is longer than max_bytes; -errno of open(2) and read(2).
 */
int io_read_file(int dir_fd, const char *path, size_t max_bytes, char **ret_data,
		 size_t *ret_bytes);

/* Reads from `fd` until its end, as io_read_file. */
int io_read_fd(int fd, size_t max_bytes, char **ret_data, size_t *ret_bytes);

/* Writes all of `data`, by as many write(2) calls as needed. 0 or -errno. */
int io_write_full(int fd, const void *data, size_t bytes);

#endif
