/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/files/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/parse.h"

#define FDINFO_BYTES 4096

/*
 * Finds the file-system type, which follows " - ". A path cannot contain that text, because the
 * kernel writes a space as \040. See proc(5).
 */
static const char *line_type(const char *line, size_t *ret_bytes)
{
	const char *dash = memmem(line, strcspn(line, "\n"), " - ", 3);

	if (!dash)
		return NULL;
	dash += 3;
	*ret_bytes = strcspn(dash, " \n");
	return dash;
}

const char *mounts_type(const char *text, uint64_t mount_id, size_t *ret_bytes)
{
	char want[24];
	size_t bytes = (size_t)snprintf(want, sizeof(want), "%" PRIu64 " ", mount_id);

	while (*text) {
		if (strncmp(text, want, bytes) == 0)
			return line_type(text, ret_bytes);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return NULL;
}

/* Takes the next word of the line, up to a space or to the end of the line. */
static struct mounts_text take_word(const char **at)
{
	struct mounts_text word = { .at = *at, .bytes = strcspn(*at, " \n") };

	*at += word.bytes;
	*at += **at == ' ';
	return word;
}

/* Reads the major and minor number, such as "8:1". */
static bool read_numbers(struct mounts_text word, struct mounts_row *row)
{
	const char *colon = memchr(word.at, ':', word.bytes);
	char text[2][16] = {};
	uint64_t number[2];
	size_t major_bytes;

	if (!colon)
		return false;
	major_bytes = (size_t)(colon - word.at);
	if (major_bytes >= sizeof(text[0]) || word.bytes - major_bytes - 1 >= sizeof(text[1]))
		return false;
	memcpy(text[0], word.at, major_bytes);
	memcpy(text[1], colon + 1, word.bytes - major_bytes - 1);
	for (int i = 0; i < 2; i++)
		if (parse_u64(text[i], 0, UINT32_MAX, &number[i]) < 0)
			return false;
	row->major = (uint32_t)number[0];
	row->minor = (uint32_t)number[1];
	return true;
}

/*
 * Reads a line such as
 * "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue".
 */
static bool read_row(const char *line, struct mounts_row *ret_row)
{
	struct mounts_row row;
	const char *dash;

	take_word(&line);
	take_word(&line);
	if (!read_numbers(take_word(&line), &row))
		return false;
	row.root = take_word(&line);
	row.point = take_word(&line);
	dash = memmem(line, strcspn(line, "\n"), " - ", 3);
	if (!row.root.bytes || !row.point.bytes || !dash)
		return false;
	line = dash + 3;
	row.type = take_word(&line);
	row.source = take_word(&line);
	*ret_row = row;
	return true;
}

bool mounts_next(const char **at, struct mounts_row *ret_row)
{
	bool found = false;

	while (!found && **at) {
		const char *line = *at;

		*at += strcspn(line, "\n");
		*at += **at == '\n';
		found = read_row(line, ret_row);
	}
	return found;
}

/* Returns the byte of an escape: a backslash and three octal digits. -1: not an escape. */
static int read_escape(const char *at, size_t bytes)
{
	int byte = 0;

	if (bytes < 4 || at[0] != '\\')
		return -1;
	for (int i = 1; i < 4; i++) {
		if (at[i] < '0' || at[i] > '7')
			return -1;
		byte = byte * 8 + at[i] - '0';
	}
	return byte <= 0xff ? byte : -1;
}

size_t mounts_unescape(struct mounts_text text, char *to, size_t space)
{
	size_t n = 0;

	for (size_t i = 0; i < text.bytes; n++) {
		int byte = read_escape(text.at + i, text.bytes - i);

		if (n + 1 < space)
			to[n] = byte < 0 ? text.at[i] : (char)byte;
		i += byte < 0 ? 1 : 4;
	}
	to[n < space ? n : space - 1] = '\0';
	return n;
}

int mounts_id(const char *text, uint64_t *ret_mount_id)
{
	static const char key[] = "\nmnt_id:\t";
	const char *at = strstr(text, key);
	char number[24];
	size_t bytes;

	if (!at)
		return -EBADMSG;
	at += strlen(key);
	bytes = strcspn(at, "\n");
	if (bytes >= sizeof(number))
		return -EBADMSG;
	memcpy(number, at, bytes);
	number[bytes] = '\0';
	return parse_u64(number, 0, UINT64_MAX, ret_mount_id) < 0 ? -EBADMSG : 0;
}

int mounts_id_of(int fd, uint64_t *ret_mount_id)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	size_t bytes;
	int r;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	r = io_read_file(AT_FDCWD, path, FDINFO_BYTES, &text, &bytes);
	return r < 0 ? r : mounts_id(text, ret_mount_id);
}
