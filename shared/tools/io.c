/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define FIRST_BYTES 4096u

static ssize_t read_some(int fd, void *to, size_t bytes)
{
	ssize_t n;

	do
		n = read(fd, to, bytes);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/*
 * Doubles the buffer, up to max_bytes plus two: one byte to detect a longer file, one for the NUL.
 */
static int grow_buffer(char **data, size_t *space, size_t max_bytes)
{
	size_t wall = max_bytes < SIZE_MAX - 2 ? max_bytes + 2 : SIZE_MAX;
	size_t more = *space < wall / 2 ? MAX(*space * 2, (size_t)FIRST_BYTES) : wall;
	char *larger;

	more = MIN(more, wall);
	larger = realloc(*data, more);
	if (!larger)
		return -ENOMEM;
	*data = larger;
	*space = more;
	return 0;
}

/*
 * Does not use the size of the file: files of procfs and cgroupfs have size 0, and only read(2)
 * shows their end.
 */
int io_read_fd(int fd, size_t max_bytes, char **ret_data, size_t *ret_bytes)
{
	_cleanup_free_ char *data = NULL;
	size_t bytes = 0, space = 0;
	ssize_t n;
	int r;

	do {
		if (bytes + 1 >= space) {
			r = grow_buffer(&data, &space, max_bytes);
			if (r < 0)
				return r;
		}
		n = read_some(fd, data + bytes, space - 1 - bytes);
		if (n < 0)
			return (int)n;
		bytes += (size_t)n;
		if (bytes > max_bytes)
			return -EFBIG;
	} while (n > 0);
	data[bytes] = '\0';
	*ret_data = TAKE_PTR(data);
	*ret_bytes = bytes;
	return 0;
}

int io_read_file(int dir_fd, const char *path, size_t max_bytes, char **ret_data, size_t *ret_bytes)
{
	_cleanup_close_ int fd = -1;

	fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	return io_read_fd(fd, max_bytes, ret_data, ret_bytes);
}

int io_write_full(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes > 0) {
		ssize_t n = write(fd, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO; /* write(2) leaves 0 undefined: do not loop on it */
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}
