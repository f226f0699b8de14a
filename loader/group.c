/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include "shared/cleanup.h"
#include "shared/io.h"
#include "shared/parse.h"

#define GROUP_BYTES_MAX (16u << 20)
#define GID_LAST	0xfffffffeU /* (gid_t)-1 means "no change" to chown(2) */

/* The number in "name:password:GID:members", or -EINVAL. */
static int gid_of(const char *line, size_t bytes, gid_t *ret_gid)
{
	const char *from = memchr(line, ':', bytes);
	char digits[16];
	const char *to;
	uint64_t gid;
	int r;

	if (from)
		from = memchr(from + 1, ':', bytes - (size_t)(from + 1 - line));
	if (!from)
		return -EINVAL;
	from++;
	to = memchr(from, ':', bytes - (size_t)(from - line));
	if (!to || (size_t)(to - from) >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, from, (size_t)(to - from));
	digits[to - from] = '\0';
	r = parse_u64(digits, 0, GID_LAST, &gid);
	if (r < 0)
		return r;
	*ret_gid = (gid_t)gid;
	return 0;
}

int group_parse(const char *text, const char *name, gid_t *ret_gid)
{
	size_t bytes = strlen(name);

	if (strpbrk(name, ":\n")) /* no name, but a piece of a line */
		return -ENOENT;
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");

		if (length > bytes && strncmp(line, name, bytes) == 0 && line[bytes] == ':' &&
		    gid_of(line, length, ret_gid) == 0)
			return 0;
		line += length;
		line += *line == '\n';
	}
	return -ENOENT;
}

int group_find(const char *name, gid_t *ret_gid)
{
	_cleanup_free_ char *text = NULL;
	uint64_t number;
	size_t bytes;
	int r;

	if (parse_u64(name, 0, GID_LAST, &number) == 0) {
		*ret_gid = (gid_t)number;
		return 0;
	}
	r = io_read_file(AT_FDCWD, "/etc/group", GROUP_BYTES_MAX, &text, &bytes);
	if (r < 0)
		return r;
	return group_parse(text, name, ret_gid);
}
