/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/accounts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/parse.h"

#define FILE_BYTES_MAX (16u << 20)
#define NUMBER_LAST    0xfffffffeU /* (gid_t)-1 and (uid_t)-1 mean "no change" to chown(2) */

/* Parses the number in "name:password:NUMBER:rest"; -EINVAL if there is none. */
static int parse_line(const char *line, size_t bytes, uint32_t *ret_number)
{
	const char *from = memchr(line, ':', bytes);
	char digits[16];
	const char *to;
	uint64_t number;
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
	r = parse_u64(digits, 0, NUMBER_LAST, &number);
	if (r < 0)
		return r;
	*ret_number = (uint32_t)number;
	return 0;
}

int accounts_parse(const char *text, const char *name, uint32_t *ret_number)
{
	size_t bytes = strlen(name);

	if (strpbrk(name, ":\n")) /* a name has neither; this would match in the middle of a line */
		return -ENOENT;
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");

		if (length > bytes && strncmp(line, name, bytes) == 0 && line[bytes] == ':' &&
		    parse_line(line, length, ret_number) == 0)
			return 0;
		line += length;
		line += *line == '\n';
	}
	return -ENOENT;
}

static int find_account(const char *path, const char *name, uint32_t *ret_number)
{
	_cleanup_free_ char *text = NULL;
	uint64_t number;
	size_t bytes;
	int r;

	if (parse_u64(name, 0, NUMBER_LAST, &number) == 0) {
		*ret_number = (uint32_t)number;
		return 0;
	}
	r = io_read_file(AT_FDCWD, path, FILE_BYTES_MAX, &text, &bytes);
	if (r < 0)
		return r;
	return accounts_parse(text, name, ret_number);
}

int accounts_find_group(const char *name, gid_t *ret_gid)
{
	return find_account("/etc/group", name, ret_gid);
}

int accounts_find_user(const char *name, uid_t *ret_uid)
{
	return find_account("/etc/passwd", name, ret_uid);
}
