/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/kernel/iterator.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"

/*
 * Reads once, and again on EAGAIN: an iterator that passed MAX_ITER_OBJECTS (a million) objects
 * without output returns EAGAIN, and the next read(2) continues from there.
 */
static ssize_t read_some(int fd, uint8_t *to, size_t bytes)
{
	for (unsigned int i = 0; i < RECORDS_AGAIN_MAX; i++) {
		ssize_t n = read(fd, to, bytes);

		if (n >= 0)
			return n;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return -EAGAIN;
}

int iterator_read(const char *path, iterator_call call, void *context)
{
	_cleanup_free_ uint8_t *buffer = malloc(RECORDS_BUFFER_BYTES);
	_cleanup_close_ int fd = -1;
	size_t filled = 0;

	if (!buffer)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read_some(fd, buffer + filled, RECORDS_BUFFER_BYTES - filled), used;

		if (n < 0)
			return (int)n;
		if (n == 0)
			return filled == 0 ? 0 : -EBADMSG;
		filled += (size_t)n;
		used = call(context, buffer, filled);
		if (used < 0)
			return (int)used;
		filled -= (size_t)used;
		if (filled == RECORDS_BUFFER_BYTES)
			return -EBADMSG;
		memmove(buffer, buffer + used, filled);
	}
}
