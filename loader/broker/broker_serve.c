/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker/broker_serve.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "loader/broker/broker_rights.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Most requests of one connection in a row; then the listening socket is polled again. */
#define TURN_MAX 64

/* Returns whether a worker handles the connection's request, or will do so at `start_ns`. */
static bool is_busy(const struct broker_connection *c)
{
	return c->worker || c->start_ns;
}

static void close_connection(struct broker_serve *s, struct broker_connection *c)
{
	if (c->worker)
		broker_worker_give_up(c->worker);
	s->peer.wires[c - s->connections] = (struct broker_wire){ .fd = -1 };
	cleanup_close(&c->fd);
	*c = (struct broker_connection){ .fd = -1 };
}

/*
 * Returns whether the other side has closed the connection: recvmsg(2) returns 0 for an empty
 * message, too.
 */
static bool has_ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0;
}

/*
 * Receives one message. Without a control buffer the kernel closes any descriptor in the message
 * before we own it, and sets MSG_CTRUNC. 1; 0: no message; -errno.
 */
static int receive_message(int fd, uint8_t data[BROKER_REQUEST_MAX],
			   struct broker_message *ret_message)
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

/* Waits until `fd` is writable, at most until BROKER_SEND_MS after `began_ns`. */
static bool wait_writable(int fd, uint64_t began_ns)
{
	uint64_t gone_ms = (clock_mono_ns() - began_ns) / NSEC_PER_MSEC;
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return gone_ms < BROKER_SEND_MS && poll(&p, 1, (int)(BROKER_SEND_MS - gone_ms)) >= 0;
}

static int send_answer(int fd, const struct broker_answer *answer,
		       const struct broker_result *result)
{
	uint64_t began_ns = clock_mono_ns();
	int r;

	do {
		r = broker_rights_send(fd, answer, sizeof(*answer), result);
	} while ((r == -EAGAIN || r == -EINTR) && wait_writable(fd, began_ns));
	return r;
}

/* Sends the answer and closes the descriptors of the result. */
static int answer_one(struct broker_serve *s, struct broker_connection *c,
		      const struct broker_answer *answer, struct broker_result *result)
{
	int r = send_answer(c->fd, answer, result);

	broker_peer_gave(&s->peer, c->fd, answer->request, result->count);

	while (result->count > 0)
		close(result->fds[--result->count]);
	return r;
}

/* Sets the timer of SIGALRM, which ends this process by default in any wait. */
static void limit_time(time_t seconds)
{
	struct itimerval limit = { .it_value = { .tv_sec = seconds } };

	setitimer(ITIMER_REAL, &limit, NULL);
}

/*
 * Returns whether its worker counts the peer's descriptors. A count calls no file system, so it
 * cannot hang.
 */
static bool is_count(const struct broker_connection *c)
{
	return c->session.request == BROKER_SAMPLER_OPEN ||
	       c->session.request == BROKER_SIGNAL_ATTACH;
}

/* The argument of a worker. */
struct errand {
	struct broker_serve *serve;
	const struct broker_connection *connection;
};

/*
 * Runs in the worker, which a file system may block for ever. It closes the connections, so that
 * they end when the broker closes them.
 */
static void run_errand(void *context, struct broker_result *result)
{
	const struct errand *errand = context;
	const struct broker_connection *c = errand->connection;
	struct broker_serve *s = errand->serve;

	close(s->listen_fd);
	for (size_t i = 0; i < ARRAY_SIZE(s->connections); i++)
		cleanup_close(&s->connections[i].fd);
	if (!is_count(c))
		broker_peer_close(&s->peer);
	broker_dispatch_work(&s->dispatch, &c->session, result);
}

/*
 * Starts the worker of a request, or stores when to start it; answers at once if none can be
 * started. 0; -errno: close the connection.
 */
static int run_apart(struct broker_serve *s, struct broker_connection *c)
{
	struct errand errand = { .serve = s, .connection = c };
	struct broker_result result = { .refusal = REFUSAL_NONE };
	struct broker_answer answer;
	int r;

	c->began_ns = clock_mono_ns();
	c->start_ns = is_count(c) && c->began_ns < s->peer.rest_ns ? s->peer.rest_ns : 0;
	if (c->start_ns)
		return 0;
	c->mark = s->peer.given;
	r = broker_worker_start(&s->workers, is_count(c), run_errand, &errand, &c->worker);
	if (r == 0)
		return 0;
	result.refusal = r == -EBUSY ? REFUSAL_STUCK : REFUSAL_KERNEL;
	result.error = r == -EBUSY ? 0 : r;
	broker_dispatch_end(&s->dispatch, &c->session, &result, &answer);
	return answer_one(s, c, &answer, &result);
}

/* Takes the worker's result, or gives up a late worker, and answers. */
static void end_apart(struct broker_serve *s, struct broker_connection *c)
{
	struct broker_result result = { .refusal = REFUSAL_NONE };
	uint64_t now_ns = clock_mono_ns();
	struct broker_answer answer;
	int r = broker_worker_take(c->worker, now_ns, &result);

	if (r == -EAGAIN)
		return;
	if (r < 0)
		result.refusal = REFUSAL_SLOW;
	c->worker = NULL;
	if (is_count(c))
		broker_peer_end(&s->peer, &c->mark, result.counted ? &result.held : NULL,
				c->began_ns, now_ns);
	limit_time(BROKER_REQUEST_S);
	broker_dispatch_end(&s->dispatch, &c->session, &result, &answer);
	r = answer_one(s, c, &answer, &result);
	limit_time(0);
	if (r < 0)
		close_connection(s, c);
}

static int serve_message(struct broker_serve *s, struct broker_connection *c,
			 const struct broker_message *message)
{
	struct broker_answer answer;
	struct broker_result result;
	enum broker_verdict verdict;
	int r;

	verdict = broker_dispatch(&s->dispatch, &c->session, message, clock_mono_ns(), &answer,
				  &result);
	if (verdict == BROKER_APART)
		return run_apart(s, c);
	r = answer_one(s, c, &answer, &result);
	return r == 0 && verdict == BROKER_NOT_OURS ? -EPROTO : r;
}

/* Serves one request. 1: served; 0: there was no request; -errno: close the connection. */
static int serve_one(struct broker_serve *s, struct broker_connection *c)
{
	_Alignas(uint64_t) uint8_t data[BROKER_REQUEST_MAX];
	struct broker_message message;
	int r;

	r = receive_message(c->fd, data, &message);
	if (r <= 0)
		return r;
	s->heard_ns = clock_mono_ns();
	limit_time(BROKER_REQUEST_S);
	r = serve_message(s, c, &message);
	limit_time(0);
	return r < 0 ? r : 1;
}

/*
 * Serves a connection until it has no more requests. A connection above the rate is not read for
 * BROKER_HOLD_MS, because refusals cost time, too.
 */
static void serve_connection(struct broker_serve *s, struct broker_connection *c)
{
	bool over_rate = false;
	int r = 1;

	for (int i = 0; i < TURN_MAX && r > 0 && !is_busy(c); i++) {
		r = serve_one(s, c);
		over_rate = r > 0 ? s->dispatch.over_rate : over_rate;
	}
	if (r < 0)
		close_connection(s, c);
	else if (over_rate)
		c->held_ns = clock_mono_ns() + BROKER_HOLD_MS * NSEC_PER_MSEC;
}

/* Returns the process at the other end if it belongs to the allowed user; else 0. */
static pid_t read_consumer(const struct broker_serve *s, int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t bytes = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0 || bytes != sizeof(peer))
		return 0;
	return peer.uid == s->uid ? peer.pid : 0;
}

/*
 * Sends the refusal. Reads the client's first message: closing with unread messages would discard
 * the answer.
 */
static void turn_away(struct broker_serve *s, int fd, enum broker_refusal refusal)
{
	const struct broker_result none = { 0 };
	uint8_t data[BROKER_REQUEST_MAX];
	struct broker_message message;
	struct broker_answer answer;

	broker_dispatch_refuse(&s->dispatch, refusal, &answer);
	receive_message(fd, data, &message);
	send_answer(fd, &answer, &none);
}

/*
 * Finds a free connection; closes connections that the other side has closed. *ret_alone: no
 * connection is open.
 */
static struct broker_connection *find_place(struct broker_serve *s, bool *ret_alone)
{
	struct broker_connection *found = NULL;

	*ret_alone = true;
	for (size_t i = 0; i < ARRAY_SIZE(s->connections); i++) {
		struct broker_connection *c = &s->connections[i];

		if (c->fd >= 0 && has_ended(c->fd))
			close_connection(s, c);
		if (c->fd < 0)
			found = c;
		else
			*ret_alone = false;
	}
	return found;
}

/*
 * Accepts a connection of the process that already has one or, if none is open, of any process.
 * /proc/PID is opened while the connection is open, so the number still belongs to that process.
 */
static enum broker_refusal judge_peer(struct broker_serve *s, int fd, pid_t pid, bool alone)
{
	if (!alone)
		return pid == s->peer.pid ? REFUSAL_NONE : REFUSAL_BUSY;
	broker_peer_close(&s->peer);
	return broker_peer_open(pid, &s->peer) < 0 || has_ended(fd) ? REFUSAL_GONE : REFUSAL_NONE;
}

static int accept_one(struct broker_serve *s)
{
	enum broker_refusal refusal = REFUSAL_BUSY;
	_cleanup_close_ int fd = -1;
	struct broker_connection *c;
	bool alone;
	pid_t pid;

	fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED || errno == EAGAIN ? 0 : -errno;
	s->heard_ns = clock_mono_ns();
	c = find_place(s, &alone);
	pid = read_consumer(s, fd);
	if (!pid)
		refusal = REFUSAL_PEER;
	else if (c)
		refusal = judge_peer(s, fd, pid, alone);
	if (refusal != REFUSAL_NONE) {
		turn_away(s, fd, refusal);
		return 0;
	}
	s->peer.wires[c - s->connections] = (struct broker_wire){ .fd = fd };
	*c = (struct broker_connection){ .fd = TAKE_FD(fd) };
	return 0;
}

static bool has_given_up(const struct broker_serve *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->workers.items); i++)
		if (s->workers.items[i].given_up)
			return true;
	return false;
}

/* Returns the next deadline: idle exit, end of a hold, start of a count, a late worker. */
static uint64_t find_due_ns(const struct broker_serve *s, uint64_t now_ns)
{
	uint64_t from_ns = has_given_up(s) ? now_ns : s->heard_ns;
	uint64_t due = from_ns + BROKER_IDLE_MS * NSEC_PER_MSEC;

	for (size_t i = 0; i < ARRAY_SIZE(s->connections); i++) {
		const struct broker_connection *c = &s->connections[i];

		if (c->held_ns)
			due = MIN(due, c->held_ns);
		if (c->start_ns)
			due = MIN(due, c->start_ns);
		if (c->worker)
			due = MIN(due, c->worker->end_ns);
	}
	return due;
}

static bool is_over(const struct broker_serve *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->connections); i++)
		if (is_busy(&s->connections[i]))
			return false;
	return !has_given_up(s) && clock_mono_ns() - s->heard_ns >= BROKER_IDLE_MS * NSEC_PER_MSEC;
}

/* Handles due connections and those that poll(2) reports in `found`. */
static void serve_connections(struct broker_serve *s, const struct pollfd *found)
{
	uint64_t now_ns = clock_mono_ns();

	for (size_t i = 0; i < ARRAY_SIZE(s->connections); i++) {
		struct broker_connection *c = &s->connections[i];

		if (c->start_ns && c->start_ns <= now_ns && run_apart(s, c) < 0)
			close_connection(s, c);
		if (c->worker)
			end_apart(s, c);
		if (c->held_ns && c->held_ns <= now_ns)
			c->held_ns = 0;
		if (found[i].revents && is_busy(c))
			close_connection(s, c); /* POLLRDHUP: nothing else is polled then */
		else if (found[i].revents && c->fd == found[i].fd)
			serve_connection(s, c);
	}
}

/* Polls once and handles the ready descriptors. 1: continue; 0: idle for BROKER_IDLE_MS; -errno. */
static int run_turn(struct broker_serve *s)
{
	struct pollfd sources[1 + BROKER_CONNECTIONS + ARRAY_SIZE(s->workers.items)] = {
		{ .fd = s->listen_fd, .events = POLLIN },
	};
	struct pollfd *connections = &sources[1], *workers = &sources[1 + BROKER_CONNECTIONS];
	uint64_t now_ns = clock_mono_ns(), due = find_due_ns(s, now_ns);
	uint64_t wait_ns = due - MIN(due, now_ns);
	int r = 0;

	for (size_t i = 0; i < BROKER_CONNECTIONS; i++) {
		const struct broker_connection *c = &s->connections[i];

		connections[i].fd = c->held_ns ? -1 : c->fd;
		connections[i].events = is_busy(c) ? POLLRDHUP : POLLIN | POLLRDHUP;
	}
	for (size_t i = 0; i < ARRAY_SIZE(s->workers.items); i++)
		workers[i] = (struct pollfd){ .fd = s->workers.items[i].fd, .events = POLLIN };
	if (poll(sources, ARRAY_SIZE(sources),
		 (int)((wait_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC)) < 0)
		return errno == EINTR ? 1 : -errno;
	serve_connections(s, connections);
	for (size_t i = 0; i < ARRAY_SIZE(s->workers.items); i++)
		broker_worker_look(&s->workers.items[i]);
	if (sources[0].revents)
		r = accept_one(s);
	if (r < 0)
		return r;
	return is_over(s) ? 0 : 1;
}

int broker_serve(struct broker_serve *s)
{
	int r;

	broker_workers_init(&s->workers);
	s->peer = BROKER_PEER_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(s->connections); i++)
		s->connections[i] = (struct broker_connection){ .fd = -1 };
	s->heard_ns = clock_mono_ns();
	do {
		r = run_turn(s);
	} while (r > 0);
	for (size_t i = 0; i < ARRAY_SIZE(s->connections); i++)
		close_connection(s, &s->connections[i]);
	broker_workers_done(&s->workers);
	broker_peer_close(&s->peer);
	return r;
}
