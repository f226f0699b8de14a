/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/broker/broker_client_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

void broker_client_wire_close(struct broker_client_brought *brought)
{
	for (size_t i = 0; i < brought->n; i++)
		close(brought->fds[i]);
	brought->n = 0;
}

int broker_client_wire_send(int fd, uint32_t request, uint32_t sequence, const void *body,
			    size_t bytes)
{
	const struct broker_row *row = broker_row(request);
	struct broker_request_header header = {
		.magic = BROKER_MAGIC,
		.request = request,
		.sequence = sequence,
	};
	uint8_t message[BROKER_REQUEST_MAX];

	if (!row || row->bytes != sizeof(header) + bytes || row->bytes > sizeof(message))
		return -EBADMSG;
	memcpy(message, &header, sizeof(header));
	memcpy(message + sizeof(header), body, bytes);
	if (send(fd, message, row->bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return errno == EPIPE ? -ECONNRESET : -errno;
	return 0;
}

int broker_client_wire_wait(int fd, unsigned int wait_ms)
{
	uint64_t end_ns = clock_mono_ns() + wait_ms * NSEC_PER_MSEC;

	for (;;) {
		struct pollfd want = { .fd = fd, .events = POLLIN };
		uint64_t now_ns = clock_mono_ns();
		uint64_t left_ns = end_ns - MIN(now_ns, end_ns);
		int n = poll(&want, 1, (int)((left_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC));

		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/*
 * Takes the descriptors out of the control data; false unless it holds at most one SCM_RIGHTS
 * message.
 */
static bool take_descriptors(struct msghdr *message, struct broker_client_brought *ret_caught)
{
	struct broker_client_brought caught = { .n = 0 };
	bool fine = !(message->msg_flags & (MSG_TRUNC | MSG_CTRUNC));

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0), n = bytes / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			fine = false;
			continue;
		}
		fine = fine && !caught.n;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (caught.n < ARRAY_SIZE(caught.fds))
				caught.fds[caught.n++] = fd;
			else
				close(fd);
		}
	}
	*ret_caught = caught;
	return fine;
}

/*
 * Receives one message of exactly an answer's length. -ECONNRESET: the broker closed the
 * connection.
 */
static int receive_answer(int fd, struct broker_answer *ret_answer,
			  struct broker_client_brought *ret_caught)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(ret_caught->fds))];
	struct iovec part = { .iov_base = ret_answer, .iov_len = sizeof(*ret_answer) };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct broker_client_brought caught = {};
	ssize_t n;
	bool fine;

	n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	fine = take_descriptors(&message, &caught);
	if (n == sizeof(*ret_answer) && fine) {
		*ret_caught = caught;
		return 0;
	}
	broker_client_wire_close(&caught);
	return n == 0 ? -ECONNRESET : -EBADMSG;
}

/*
 * Whether the answer belongs to that request. A broker that refuses the whole connection answers
 * before it reads the request: then the sequence is 0.
 */
static bool is_answer_to(const struct broker_answer *answer, uint32_t request, uint32_t sequence)
{
	if (answer->magic != BROKER_MAGIC || answer->refusal >= REFUSAL_COUNT_)
		return false;
	if (answer->refusal != REFUSAL_NONE && sequence == 1 && !answer->sequence)
		return true;
	return answer->request == request && answer->sequence == sequence;
}

/*
 * Whether the answer has as many descriptors as it promised, and as many as the request may bring.
 */
static bool count_fits(const struct broker_answer *answer, const struct broker_row *row, size_t n)
{
	if (n != answer->descriptors || n > row->descriptors)
		return false;
	return answer->refusal == REFUSAL_NONE ? !n == !row->descriptors : !n;
}

int broker_client_wire_receive(int fd, uint32_t request, uint32_t sequence,
			       struct broker_answer *ret_answer,
			       struct broker_client_brought *ret_brought)
{
	struct broker_client_brought brought = {};
	int r = receive_answer(fd, ret_answer, &brought);

	if (r < 0)
		return r;
	if (!is_answer_to(ret_answer, request, sequence) ||
	    !count_fits(ret_answer, broker_row(request), brought.n)) {
		broker_client_wire_close(&brought);
		return -EBADMSG;
	}
	*ret_brought = brought;
	return 0;
}

const char *broker_client_wire_text(int r)
{
	switch (r) {
	case -ECONNRESET:
		return "the broker ended the connection without an answer";
	case -EBADMSG:
		return "the broker's answer was malformed";
	}
	return "the broker's socket failed";
}

const char *broker_client_wire_connect_text(int error)
{
	switch (error) {
	case ENOENT:
		return "there is no broker's socket: its optional unit is not installed or not "
		       "started";
	case ECONNREFUSED:
		return "the broker is not listening: is trocar-broker.socket started?";
	case EACCES:
	case EPERM:
		return "this user may not connect to the broker's socket";
	case EAGAIN:
		return "the broker's socket takes no further connection";
	case EPROTOTYPE:
		return "the broker's socket is not of the type SOCK_SEQPACKET";
	}
	return "the broker's socket cannot be connected to";
}
