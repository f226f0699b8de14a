/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/io/service_notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

/* One day. A longer interval is refused. */
#define WATCHDOG_MAX_US (24 * 3600 * UINT64_C(1000000))

/* Source: sd_notify(3), unix(7). A path has its NUL in the address, an abstract name has none. */
static int make_address(const char *name, struct sockaddr_un *ret_address, socklen_t *ret_bytes)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t bytes = strlen(name);

	if (name[0] != '/' && name[0] != '@')
		return -EAFNOSUPPORT;
	if (bytes < 2 || bytes >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, name, bytes);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	else
		bytes++;
	*ret_address = address;
	*ret_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
	return 0;
}

static int connect_to(const char *name, int *ret_fd)
{
	static const struct timeval wait = {
		.tv_sec = SERVICE_NOTIFY_WAIT_MS / 1000,
		.tv_usec = SERVICE_NOTIFY_WAIT_MS % 1000 * 1000,
	};
	struct sockaddr_un address;
	_cleanup_close_ int fd = -1;
	socklen_t bytes;
	int r;

	r = make_address(name, &address, &bytes);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, bytes) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/*
 * Children inherit both variables, so the pid names the process that they are for. Source:
 * sd_watchdog_enabled(3).
 */
static int read_watchdog(const char *usec, const char *pid, uint64_t *ret_ns)
{
	uint64_t us, owner;
	int r;

	*ret_ns = 0;
	if (!usec || !*usec)
		return 0;
	if (pid && *pid) {
		r = parse_u64(pid, 1, INT32_MAX, &owner);
		if (r < 0)
			return -EINVAL;
		if (owner != (uint64_t)getpid())
			return 0;
	}
	r = parse_u64(usec, 1, WATCHDOG_MAX_US, &us);
	if (r < 0)
		return -EINVAL;
	*ret_ns = us * 1000;
	return 0;
}

int service_notify_open(const char *socket, const char *usec, const char *pid,
			struct service_notify *ret_notify)
{
	struct service_notify notify = SERVICE_NOTIFY_NONE;
	int r;

	if (socket && *socket) {
		r = read_watchdog(usec, pid, &notify.watchdog_ns);
		if (r < 0)
			return r;
		r = connect_to(socket, &notify.fd);
		if (r < 0)
			return r;
	}
	*ret_notify = notify;
	return 0;
}

void service_notify_close(struct service_notify *notify)
{
	cleanup_close(&notify->fd);
	*notify = SERVICE_NOTIFY_NONE;
}

int service_notify_say(const struct service_notify *notify, const char *state, const char *format,
		       ...)
{
	char text[SERVICE_NOTIFY_BYTES];
	size_t head;
	va_list args;

	if (notify->fd < 0)
		return 0;
	head = (size_t)snprintf(text, sizeof(text), "%s\nSTATUS=", state);
	if (head >= sizeof(text))
		return -EMSGSIZE;
	va_start(args, format);
	vsnprintf(text + head, sizeof(text) - head, format, args);
	va_end(args);
	/* A line break would start another assignment. */
	for (char *p = text + head; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	return send(notify->fd, text, strlen(text), MSG_NOSIGNAL) < 0 ? -errno : 0;
}
