/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker/broker_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

#define LISTEN_FIRST 3 /* SD_LISTEN_FDS_START */

/* Returns whether `fd` is a listening Unix socket of type SOCK_SEQPACKET. */
static bool is_listening(int fd)
{
	static const struct {
		int option, wanted;
	} rows[] = {
		{ SO_DOMAIN, AF_UNIX },
		{ SO_TYPE, SOCK_SEQPACKET },
		{ SO_ACCEPTCONN, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int value = -1;
		socklen_t bytes = sizeof(value);

		if (getsockopt(fd, SOL_SOCKET, rows[i].option, &value, &bytes) < 0 ||
		    value != rows[i].wanted)
			return false;
	}
	return true;
}

int broker_listen_take(int *ret_fd)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	uint64_t self = (uint64_t)getpid(), number;
	bool fine;

	if (!pid || !fds || parse_u64(pid, self, self, &number) < 0)
		return -ENOENT;
	fine = parse_u64(fds, 1, 1, &number) == 0;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (!fine || !is_listening(LISTEN_FIRST))
		return -EPROTOTYPE;
	if (fcntl(LISTEN_FIRST, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	*ret_fd = LISTEN_FIRST;
	return 0;
}
