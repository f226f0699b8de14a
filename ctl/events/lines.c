/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (2u * LINES_MAX_BYTES)

int lines_init(struct lines *l, int fd)
{
	*l = (struct lines){ .data = malloc(BUFFER_BYTES) };
	return l->data ? unpack_init(&l->unpack, fd) : -ENOMEM;
}

void lines_done(struct lines *l)
{
	unpack_done(&l->unpack);
	free(l->data);
	l->data = NULL;
}

/* Reads more bytes after the buffered ones. 1, 0 at the end, or -errno. */
static int fill_buffer(struct lines *l)
{
	ssize_t n;

	if (l->at == l->bytes) {
		l->at = l->bytes = 0;
	} else if (l->bytes == BUFFER_BYTES) {
		memmove(l->data, l->data + l->at, l->bytes - l->at);
		l->bytes -= l->at;
		l->at = 0;
	}
	n = unpack_read(&l->unpack, l->data + l->bytes, BUFFER_BYTES - l->bytes);
	if (n < 0)
		return (int)n;
	l->bytes += (size_t)n;
	l->end = !n;
	return n > 0;
}

/* Skips the rest of a line that is too long. 0 or -errno. */
static int pass_line(struct lines *l)
{
	int r;

	do {
		const char *end = memchr(l->data + l->at, '\n', l->bytes - l->at);

		if (end) {
			l->at = (size_t)(end + 1 - l->data);
			return 0;
		}
		l->at = l->bytes = 0;
		r = fill_buffer(l);
	} while (r > 0);
	return r;
}

/* Returns `bytes` bytes as the next line. */
static int give_line(struct lines *l, size_t bytes, bool whole, struct lines_line *ret_line)
{
	*ret_line = (struct lines_line){
		.text = l->data + l->at,
		.bytes = bytes,
		.whole = whole,
		.too_long = bytes > LINES_MAX_BYTES,
	};
	l->at += bytes + whole;
	l->number++;
	return 1;
}

int lines_next(struct lines *l, struct lines_line *ret_line)
{
	size_t searched = 0;
	int r;

	for (;;) {
		const char *start = l->data + l->at;
		size_t bytes = l->bytes - l->at;
		const char *end = memchr(start + searched, '\n', bytes - searched);

		if (end)
			return give_line(l, (size_t)(end - start), true, ret_line);
		if (bytes > LINES_MAX_BYTES) {
			give_line(l, bytes, false, ret_line);
			r = pass_line(l);
			return r < 0 ? r : 1;
		}
		if (l->end)
			return bytes ? give_line(l, bytes, false, ret_line) : 0;
		searched = bytes;
		r = fill_buffer(l);
		if (r < 0)
			return r;
	}
}
