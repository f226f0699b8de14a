/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/output/output_ring.h"

#include <stdbool.h>
#include <string.h>

#include "shared/tools/macro.h"

/* Bytes of a line, with its keys up to "type" (event_line.c). */
#define LINE_BEGIN_BYTES 64

int output_ring_pieces(const struct output_ring *ring, size_t at, size_t n, struct iovec iov[2])
{
	size_t first;

	at %= ring->space;
	first = MIN(n, ring->space - at);
	iov[0] = (struct iovec){ .iov_base = ring->data + at, .iov_len = first };
	iov[1] = (struct iovec){ .iov_base = ring->data, .iov_len = n - first };
	return n > first ? 2 : 1;
}

static uint64_t count_lines(const struct iovec *piece, size_t *ret_after_last)
{
	const char *p = piece->iov_base, *end = p + piece->iov_len;
	uint64_t lines = 0;

	*ret_after_last = 0;
	while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
		p++;
		lines++;
		*ret_after_last = (size_t)(p - (const char *)piece->iov_base);
	}
	return lines;
}

uint64_t output_ring_lines(const struct output_ring *ring, size_t at, size_t n, size_t *ret_whole)
{
	struct iovec iov[2];
	size_t before = 0, after;
	uint64_t lines = 0;
	int count = output_ring_pieces(ring, at, n, iov);

	*ret_whole = 0;
	for (int i = 0; i < count; i++) {
		uint64_t here = count_lines(&iov[i], &after);

		if (here)
			*ret_whole = before + after;
		lines += here;
		before += iov[i].iov_len;
	}
	return lines;
}

size_t output_ring_line(const struct output_ring *ring, size_t at, size_t n)
{
	struct iovec iov[2];
	size_t before = 0;
	int count = output_ring_pieces(ring, at, n, iov);

	for (int i = 0; i < count; i++) {
		const char *p = memchr(iov[i].iov_base, '\n', iov[i].iov_len);

		if (p)
			return before + (size_t)(p + 1 - (const char *)iov[i].iov_base);
		before += iov[i].iov_len;
	}
	return n;
}

/*
 * Whether the line at `at` is a session's last one; the `n` bytes from there on are complete lines.
 */
static bool ends_session(const struct output_ring *ring, size_t at, size_t n)
{
	static const char mark[] = "\"type\":\"session.end\"";
	char begin[LINE_BEGIN_BYTES];
	struct iovec iov[2];
	size_t bytes = MIN(output_ring_line(ring, at, n), sizeof(begin));
	int count = output_ring_pieces(ring, at, bytes, iov);

	memcpy(begin, iov[0].iov_base, iov[0].iov_len);
	if (count > 1)
		memcpy(begin + iov[0].iov_len, iov[1].iov_base, iov[1].iov_len);
	return memmem(begin, bytes, mark, strlen(mark)) != NULL;
}

struct output_queue_left output_ring_left(const struct output_ring *ring, size_t head, size_t bytes)
{
	struct output_queue_left left = { .bytes = bytes };
	size_t line;

	for (size_t at = 0; at < left.bytes; at += line) {
		line = output_ring_line(ring, head + at, left.bytes - at);
		left.lines++;
		left.sessions += ends_session(ring, head + at, left.bytes - at);
	}
	return left;
}
