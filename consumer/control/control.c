/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/control/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "consumer/control/control_client.h"
#include "consumer/control/control_share.h"
#include "consumer/control/control_socket.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define BACKLOG	     16
#define ROUND_LINES  16			 /* requests of one client before the next client */
#define JOB_PAUSE_NS (2 * NSEC_PER_MSEC) /* pause within a request, for other clients */
#define ACCEPT_MS    1000 /* pause when accept(2) has no descriptor left for a client */

_Static_assert(CONTROL_CLIENTS_MAX == 64, "make_place() says so");
_Static_assert(CONTROL_REQUEST_BYTES == 2101248, "take_in() says so");

struct control_server {
	struct loop *loop;
	const struct control_method *methods;
	void *context;
	struct control_admins admins;
	int fd;
	char *path;
	dev_t dev; /* with inode: identifies the server's own socket file */
	ino_t inode;
	struct loop_source *listener;
	struct loop_source *timer; /* set only while a client waits */
	bool timer_armed;
	struct loop_source *job_timer; /* set only while a request is in progress */
	bool paused;		       /* accept(2) had no descriptor left */
	uint64_t last_connection;
	void (*closed)(void *context, uint64_t connection); /* may be NULL */
	void *closed_context;
	struct control_client *clients[CONTROL_CLIENTS_MAX];
	struct control_stats stats;
};

static void close_client(struct control_client *client)
{
	struct control_server *server = client->server;

	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (server->clients[i] == client)
			server->clients[i] = NULL;
	server->stats.clients--;
	server->stats.jobs -= client->pending.job != NULL;
	if (server->closed)
		server->closed(server->closed_context, client->peer.connection);
	control_client_done(client);
	free(client);
}

/* Sends the client an error and closes it after sending; reads no more of its requests. */
static void tell_client(struct control_client *client, enum control_code code, const char *message)
{
	client->server->stats.errors++;
	client->closing = true;
	(void)control_request_refuse(&client->out, code, message); /* -ENOMEM: no answer */
}

static void arm_timer(struct control_server *server, uint64_t ms)
{
	if (server->timer_armed)
		return;
	if (loop_timer_set(server->timer, ms * NSEC_PER_MSEC, 0) == 0)
		server->timer_armed = true;
}

static size_t held_bytes(const struct control_server *server)
{
	size_t bytes = 0;

	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (server->clients[i])
			bytes += control_client_bytes(server->clients[i]);
	return bytes;
}

/* Counts the answer of a client; `r` and `code` as control_request_answer gives them. */
static void note_answer(struct control_client *client, int r, int code)
{
	struct control_server *server = client->server;

	if (r < 0) {
		tell_client(client, CONTROL_INTERNAL, "no memory left for an answer");
		return;
	}
	if (code)
		server->stats.errors++;
	if (code == CONTROL_FORBIDDEN)
		server->stats.forbidden++;
	if (code == CONTROL_PARSE)
		client->closing = true; /* the answer names the fault */
}

static void answer_line(struct control_client *client, const char *line, size_t bytes)
{
	struct control_server *server = client->server;
	int code = 0, r;

	server->stats.requests++;
	r = control_request_answer(server->methods, server->context, &client->peer, line, bytes,
				   server->stats.jobs, &client->out, &code, &client->pending);
	server->stats.jobs += client->pending.job != NULL;
	note_answer(client, r, code);
}

static void continue_job(struct control_client *client)
{
	int code = 0, r = control_request_continue(&client->pending, &client->out, &code);

	client->server->stats.jobs -= client->pending.job == NULL;
	note_answer(client, r, code);
}

/*
 * Answers complete requests until one is in progress, or until an answer cannot be sent at once.
 * Returns 0; -EAGAIN: later; -errno.
 */
static int answer_lines(struct control_client *client)
{
	const char *line;
	size_t bytes;
	int r;

	for (int i = 0; i < ROUND_LINES; i++) {
		r = control_client_send(client);
		if (r < 0)
			return r;
		if (client->closing)
			return -ESHUTDOWN;
		if (client->pending.job)
			return -EAGAIN;
		if (!control_client_line(client, &line, &bytes))
			return 0;
		client->since_ns = 0;
		client->asked_ns = clock_mono_ns();
		answer_line(client, line, bytes);
		control_client_next(client, bytes);
	}
	return -EAGAIN;
}

/*
 * Waits for the end of the request in progress, or of the connection, and reads nothing in the
 * meantime.
 */
static void await_job(struct control_client *client)
{
	client->since_ns = 0;
	if (loop_timer_set(client->server->job_timer, JOB_PAUSE_NS, 0) < 0 ||
	    loop_change(client->source, EPOLLHUP) < 0)
		close_client(client);
}

/*
 * Sets which event to wait for. EPOLLOUT means "there is more to do for this client": while the
 * socket has space it fires at once, after the other clients were served. While an answer is unsent
 * nothing is read.
 */
static void await_client(struct control_client *client, bool more)
{
	if (client->pending.job) {
		await_job(client);
		return;
	}
	if (!more && !client->in_bytes)
		client->since_ns = 0;
	else if (!client->since_ns)
		client->since_ns = clock_mono_ns();
	if (client->since_ns)
		arm_timer(client->server, CONTROL_IDLE_MS);
	if (loop_change(client->source, more ? EPOLLOUT : EPOLLIN) < 0)
		close_client(client);
}

static void take_in(struct control_client *client)
{
	int r = control_client_read(client);

	if (r == -EMSGSIZE)
		tell_client(client, CONTROL_CLOSED, "a request line is at most 2101248 bytes long");
	else if (r == -ENOMEM)
		tell_client(client, CONTROL_CLOSED, "no memory left for a request");
	else if (r < 0 && r != -EAGAIN && r != -EINTR)
		client->closing = true;
}

/* Closes a client that sends no more; all its complete requests are answered. */
static void finish_client(struct control_client *client)
{
	if (client->in_bytes) {
		tell_client(client, CONTROL_PARSE, "the request has no newline at its end");
		(void)control_client_send(client);
	}
	close_client(client);
}

/* Answers the requests that can be answered now, and sets the events to wait for. */
static void serve_client(struct control_client *client)
{
	int r;

	r = answer_lines(client);
	if (r < 0 && r != -EAGAIN) {
		close_client(client);
		return;
	}
	if (r == 0 && client->eof) {
		finish_client(client);
		return;
	}
	if (held_bytes(client->server) > CONTROL_HELD_BYTES) {
		client->server->stats.closed_slow++;
		tell_client(client, CONTROL_CLOSED,
			    "connection closed: too many pending bytes of requests and replies");
		(void)control_client_send(client);
		close_client(client);
		return;
	}
	await_client(client, r == -EAGAIN);
}

static void on_client(void *context, uint32_t events)
{
	struct control_client *client = context;

	if (client->pending.job) { /* only the end of the connection is waited for */
		close_client(client);
		return;
	}
	if (events & EPOLLIN)
		take_in(client);
	serve_client(client);
}

/* Continues the requests in progress. */
static void on_jobs(void *context, uint32_t events)
{
	struct control_server *server = context;

	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		struct control_client *client = server->clients[i];

		if (!client || !client->pending.job)
			continue;
		continue_job(client);
		serve_client(client);
	}
}

/* Sends the reason once, and ends the connection. */
static void close_full(struct control_client *client, const char *message)
{
	client->server->stats.refused++;
	tell_client(client, CONTROL_CLOSED, message);
	(void)control_client_send(client);
}

/* Returns false if the newcomer got no place; it is then closed. */
static bool make_place(struct control_server *server, int fd)
{
	struct control_client newcomer, *idle;

	control_client_init(&newcomer, fd, &server->admins);
	newcomer.server = server;
	idle = control_share_place(server->clients, &newcomer.peer);
	if (!idle) {
		close_full(&newcomer, "too many clients: at most 64 at a time");
		control_client_done(&newcomer);
		return false;
	}
	close_full(
		idle,
		"connection closed: too many clients, and another user's client replaced this one");
	close_client(idle);
	return true;
}

static struct control_client **find_place(struct control_server *server)
{
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (!server->clients[i])
			return &server->clients[i];
	return NULL;
}

static void welcome_connection(struct control_server *server, int fd)
{
	struct control_client **place = find_place(server);

	if (!place) {
		if (!make_place(server, fd))
			return;
		place = find_place(server);
	}
	*place = malloc(sizeof(**place));
	if (!*place) {
		close(fd);
		return;
	}
	control_client_init(*place, fd, &server->admins);
	(*place)->server = server;
	(*place)->peer.connection = ++server->last_connection;
	server->stats.clients++;
	server->stats.accepted++;
	if (loop_add(server->loop, fd, EPOLLIN, on_client, *place, &(*place)->source) < 0) {
		close_client(*place);
		return;
	}
	on_client(*place, EPOLLIN); /* its request is there: answered one iteration earlier */
}

static void on_listener(void *context, uint32_t events)
{
	struct control_server *server = context;
	int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		welcome_connection(server, fd);
		return;
	}
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return;
	/*
	 * EMFILE, ENFILE, ENOMEM: the peer stays in the backlog, which would make the loop spin:
	 * pause.
	 */
	server->paused = true;
	(void)loop_change(server->listener, 0);
	(void)loop_timer_set(server->timer, ACCEPT_MS * NSEC_PER_MSEC, 0);
	server->timer_armed = true;
}

static void close_slow(struct control_client *client)
{
	client->server->stats.closed_slow++;
	if (!control_client_unsent(client)) {
		tell_client(client, CONTROL_CLOSED, "the request was not complete in time");
		(void)control_client_send(client);
	}
	close_client(client);
}

static void on_timer(void *context, uint32_t events)
{
	struct control_server *server = context;
	uint64_t now_ns = clock_mono_ns(), idle_ns = CONTROL_IDLE_MS * NSEC_PER_MSEC, next_ns = 0;

	server->timer_armed = false;
	if (server->paused && loop_change(server->listener, EPOLLIN) == 0)
		server->paused = false;
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		struct control_client *client = server->clients[i];

		if (!client || !client->since_ns)
			continue;
		if (now_ns - client->since_ns >= idle_ns) {
			close_slow(client);
			continue;
		}
		next_ns = MIN(next_ns ? next_ns : UINT64_MAX, client->since_ns + idle_ns - now_ns);
	}
	if (server->paused)
		next_ns = ACCEPT_MS * NSEC_PER_MSEC;
	if (next_ns)
		arm_timer(server, next_ns / NSEC_PER_MSEC + 1);
}

static int open_path(struct control_server *server, const struct sockaddr_un *address, gid_t group)
{
	struct stat st;
	int r;

	server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (server->fd < 0)
		return -errno;
	r = control_socket_bind(server->fd, address);
	if (r < 0)
		return r;
	server->path = strdup(address->sun_path);
	if (!server->path) {
		unlink(address->sun_path);
		return -ENOMEM;
	}
	if (lstat(server->path, &st) < 0)
		return -errno;
	server->dev = st.st_dev;
	server->inode = st.st_ino;
	if (group != (gid_t)-1 && lchown(server->path, (uid_t)-1, group) < 0)
		return -errno;
	if (listen(server->fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

static void server_freep(struct control_server **server)
{
	control_free(*server);
}

int control_new(struct loop *loop, const char *path, gid_t group, gid_t admin_group,
		const struct control_method *methods, void *context,
		struct control_server **ret_server)
{
	_cleanup_(server_freep) struct control_server *server = calloc(1, sizeof(*server));
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int r;

	if (!server)
		return -ENOMEM;
	server->fd = -1;
	server->loop = loop;
	server->methods = methods;
	server->context = context;
	server->admins = (struct control_admins){ admin_group, (uid_t)-1 };
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	r = control_socket_clear(&address);
	if (r < 0)
		return r;
	r = open_path(server, &address, group);
	if (r == 0)
		r = loop_timer(loop, on_timer, server, &server->timer);
	if (r == 0)
		r = loop_timer(loop, on_jobs, server, &server->job_timer);
	if (r == 0)
		r = loop_add(loop, server->fd, EPOLLIN, on_listener, server, &server->listener);
	if (r < 0)
		return r;
	*ret_server = TAKE_PTR(server);
	return 0;
}

void control_set_user(struct control_server *server, uid_t user)
{
	server->admins.user = user;
}

void control_free(struct control_server *server)
{
	struct stat st;

	if (!server)
		return;
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (server->clients[i])
			close_client(server->clients[i]);
	loop_remove(server->timer);
	loop_remove(server->job_timer);
	loop_remove(server->listener);
	if (server->path && lstat(server->path, &st) == 0 && st.st_dev == server->dev &&
	    st.st_ino == server->inode)
		(void)unlink(server->path); /* root's directory: the next start removes it */
	if (server->fd >= 0)
		close(server->fd);
	free(server->path);
	free(server);
}

void control_on_close(struct control_server *server,
		      void (*closed)(void *context, uint64_t connection), void *context)
{
	server->closed = closed;
	server->closed_context = context;
}

void control_stats(const struct control_server *server, struct control_stats *ret_stats)
{
	*ret_stats = server->stats;
}
