/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/control/control_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"

int control_socket_clear(const struct sockaddr_un *address)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	    errno == EAGAIN) /* its backlog is full: a process listens */
		return -EADDRINUSE;
	if (errno != ECONNREFUSED && errno != ENOENT)
		return -errno;
	if (unlink(address->sun_path) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

int control_socket_bind(int fd, const struct sockaddr_un *address)
{
	mode_t before = umask(0117);
	int r = 0;

	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		r = -errno;
	umask(before);
	return r;
}
