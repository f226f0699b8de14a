/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker_serve.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/macro.h"

/* Requests of one connection before the listening socket is looked at again, or a hold. */
#define TURN_MAX 64

static void hang_up(struct broker_serve *s)
{
	cleanup_close(&s->connection_fd);
	s->connection_fd = -1;
	s->held = false;
}

/* Has the other side ended the connection? An empty message reads the same as its end. */
static bool has_ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0;
}

/*
 * One message. There is no room for ancillary data, so the kernel closes what came along before it
 * ever is a descriptor of ours, and says so with MSG_CTRUNC. 1; 0: nothing there; -errno.
 */
static int receive(int fd, uint8_t data[BROKER_REQUEST_MAX], struct broker_message *ret_message)
{
	struct iovec part = { .iov_base = data, .iov_len = BROKER_REQUEST_MAX };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	n = recvmsg(fd, &message, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0 && has_ended(fd))
		return -ECONNRESET;
	*ret_message = (struct broker_message){
		.data = data,
		.bytes = (size_t)n,
		.cut = message.msg_flags & MSG_TRUNC,
		.ancillary = message.msg_flags & MSG_CTRUNC,
	};
	return 1;
}

/* Waits until `fd` takes more, at most BROKER_SEND_MS from `began_ns` on. */
static bool wait_writable(int fd, uint64_t began_ns)
{
	uint64_t gone_ms = (clock_mono_ns() - began_ns) / NSEC_PER_MSEC;
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return gone_ms < BROKER_SEND_MS && poll(&p, 1, (int)(BROKER_SEND_MS - gone_ms)) >= 0;
}

static int send_answer(int fd, const struct broker_answer *answer,
		       const struct broker_result *result)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(result->fds))];
	} control = { 0 };
	struct iovec part = { .iov_base = (void *)answer, .iov_len = sizeof(*answer) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	size_t bytes = result->count * sizeof(result->fds[0]);
	uint64_t began_ns = clock_mono_ns();

	if (bytes > 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&control.header), result->fds, bytes);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(bytes);
	}
	while (sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		if ((errno != EAGAIN && errno != EINTR) || !wait_writable(fd, began_ns))
			return -errno;
	return 0;
}

/* SIGALRM is not handled: whatever this process waits for then, it ends. */
static void limit_time(time_t seconds)
{
	struct itimerval limit = { .it_value = { .tv_sec = seconds } };

	setitimer(ITIMER_REAL, &limit, NULL);
}

/* One request, if there is one. 1: there was; 0: there was not; -errno: the connection is over. */
static int serve_one(struct broker_serve *s)
{
	_Alignas(uint64_t) uint8_t data[BROKER_REQUEST_MAX];
	struct broker_message message;
	struct broker_answer answer;
	struct broker_result result;
	bool ours;
	int r;

	r = receive(s->connection_fd, data, &message);
	if (r <= 0)
		return r;
	limit_time(BROKER_REQUEST_S);
	ours = broker_dispatch(&s->dispatch, &message, clock_mono_ns(), &answer, &result);
	r = send_answer(s->connection_fd, &answer, &result);
	for (unsigned int i = 0; i < result.count; i++)
		close(result.fds[i]);
	limit_time(0);
	if (r < 0)
		return r;
	return ours ? 1 : -EPROTO;
}

/* What comes too fast is refused, and then not read for a while: refusing takes time of ours too.
 */
static void serve_connection(struct broker_serve *s)
{
	int r = 1;

	for (int i = 0; i < TURN_MAX && r > 0; i++)
		r = serve_one(s);
	if (r < 0)
		hang_up(s);
	else
		s->held = s->dispatch.over_rate;
}

static bool is_consumer(const struct broker_serve *s, int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t bytes = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
	       bytes == sizeof(peer) && peer.uid == s->uid;
}

/*
 * Tells why and closes. What the client has sent by then is read first: closing over unread
 * messages would take the answer from it.
 */
static void turn_away(struct broker_serve *s, int fd, enum broker_refusal refusal)
{
	const struct broker_result none = { 0 };
	uint8_t data[BROKER_REQUEST_MAX];
	struct broker_message message;
	struct broker_answer answer;

	broker_dispatch_refuse(&s->dispatch, refusal, &answer);
	receive(fd, data, &message);
	send_answer(fd, &answer, &none);
}

static int accept_one(struct broker_serve *s)
{
	_cleanup_close_ int fd = -1;

	fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED || errno == EAGAIN ? 0 : -errno;
	if (s->connection_fd >= 0 && has_ended(s->connection_fd))
		hang_up(s);
	if (!is_consumer(s, fd)) {
		turn_away(s, fd, REFUSAL_PEER);
	} else if (s->connection_fd >= 0) {
		turn_away(s, fd, REFUSAL_BUSY);
	} else {
		broker_dispatch_connect(&s->dispatch);
		s->connection_fd = TAKE_FD(fd);
	}
	return 0;
}

/* One wait and what it brings. 1: go on; 0: nobody has asked for long enough; -errno. */
static int turn(struct broker_serve *s)
{
	struct pollfd sources[] = {
		{ .fd = s->listen_fd, .events = POLLIN },
		{ .fd = s->held ? -1 : s->connection_fd, .events = POLLIN | POLLRDHUP },
	};
	int n, r = 0;

	n = poll(sources, ARRAY_SIZE(sources), s->held ? BROKER_HOLD_MS : BROKER_IDLE_MS);
	if (n < 0)
		return errno == EINTR ? 1 : -errno;
	if (n == 0 && !s->held)
		return 0;
	s->held = false;
	if (sources[1].revents)
		serve_connection(s);
	if (sources[0].revents)
		r = accept_one(s);
	return r < 0 ? r : 1;
}

int broker_serve(struct broker_serve *s)
{
	int r;

	s->connection_fd = -1;
	s->held = false;
	do {
		r = turn(s);
	} while (r > 0);
	hang_up(s);
	return r;
}
