/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/user.h"

#include <fcntl.h>
#include <stdint.h>

#include "loader/group.h"
#include "shared/cleanup.h"
#include "shared/io.h"
#include "shared/parse.h"

#define PASSWD_BYTES_MAX (16u << 20)
#define UID_LAST	 0xfffffffeU

/* passwd(5) has the user's number where group(5) has the group's: behind the second colon. */
int user_find(const char *name, uid_t *ret_uid)
{
	_cleanup_free_ char *text = NULL;
	uint64_t number;
	size_t bytes;
	int r;

	if (parse_u64(name, 0, UID_LAST, &number) == 0) {
		*ret_uid = (uid_t)number;
		return 0;
	}
	r = io_read_file(AT_FDCWD, "/etc/passwd", PASSWD_BYTES_MAX, &text, &bytes);
	if (r < 0)
		return r;
	return group_parse(text, name, ret_uid);
}
