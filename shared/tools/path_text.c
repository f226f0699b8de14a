/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/path_text.h"

#include <stdio.h>
#include <string.h>

#define MARK_BYTES 30 /* "[18446744073709551615 bytes]", and the NUL */

static bool is_inner(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/*
 * Returns the length of the kept beginning, at most `most` bytes: it ends after a '/', or else
 * between two characters.
 */
static size_t find_head(const char *path, size_t most)
{
	const char *slash = memrchr(path, '/', most);

	if (slash && (size_t)(slash - path) >= most / 3)
		return (size_t)(slash - path) + 1;
	while (most && is_inner(path[most]))
		most--;
	return most;
}

/*
 * Returns the offset of the kept end, at most `most` bytes long: it begins at a '/', or else
 * between two characters.
 */
static size_t find_tail(const char *path, size_t bytes, size_t most)
{
	size_t at = bytes - most;
	const char *slash = memchr(path + at, '/', most / 2);

	if (slash)
		return (size_t)(slash - path);
	while (at < bytes && is_inner(path[at]))
		at++;
	return at;
}

size_t path_text_cut(const char *path, size_t bytes, char *to, size_t space)
{
	size_t head, tail, mark;

	if (bytes < space) {
		memcpy(to, path, bytes);
		to[bytes] = '\0';
		return 0;
	}
	head = find_head(path, (space - MARK_BYTES) / 3);
	tail = find_tail(path, bytes, space - MARK_BYTES - head);
	memcpy(to, path, head);
	mark = (size_t)snprintf(to + head, MARK_BYTES, "[%zu bytes]", tail - head);
	memcpy(to + head + mark, path + tail, bytes - tail);
	to[head + mark + bytes - tail] = '\0';
	return tail - head;
}

bool path_text_is_within(const char *path, const char *above)
{
	size_t bytes = strlen(above);

	return !strncmp(path, above, bytes) && (!path[bytes] || path[bytes] == '/');
}
