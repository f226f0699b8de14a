/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker/broker_rights.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union room {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(BROKER_DESCRIPTORS_MAX * sizeof(int))];
};

int broker_rights_send(int fd, const void *data, size_t bytes, const struct broker_result *result)
{
	size_t rights = result->count * sizeof(result->fds[0]);
	struct iovec part = { .iov_base = (void *)data, .iov_len = bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	union room control = { 0 };

	if (rights > 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(rights);
		memcpy(CMSG_DATA(&control.header), result->fds, rights);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(rights);
	}
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/*
 * The control buffer has space for the descriptors of one answer; the kernel closes any further
 * ones.
 */
static unsigned int take_rights(struct msghdr *message, int fds[BROKER_DESCRIPTORS_MAX])
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(message);
	size_t bytes;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	bytes = c->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(c), bytes);
	return (unsigned int)(bytes / sizeof(int));
}

int broker_rights_receive(int fd, void *data, size_t bytes, struct broker_result *result)
{
	struct iovec part = { .iov_base = data, .iov_len = bytes };
	union room control = { 0 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n <= 0)
		return n == 0 || errno == ECONNRESET ? -EPIPE : -errno;
	result->count = take_rights(&message, result->fds);
	if ((size_t)n == bytes && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 0;
	while (result->count > 0)
		close(result->fds[--result->count]);
	return -EBADMSG;
}
