/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * look_scene.h: connections of ours, and a process in a cgroup that is looked at, which waits for
 * them in epoll, in poll or in a ring. Functions assert.
 */
#ifndef TROCAR_TESTS_BPF_LOOK_SCENE_H
#define TROCAR_TESTS_BPF_LOOK_SCENE_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "look_fixture.h"
#include "shared/tools/macro.h"

#define PAIRS 12
#define MANY  1000

/* Both ends of a connection to a listener of ours. */
struct pair {
	int opened, accepted;
};

/* What the process that is looked at waits for. */
struct scene {
	int fds[MANY];
	size_t count;
	uint32_t what;			 /* enum look_on_kind */
	void *(*meanwhile)(void *scene); /* in a thread of its own; NULL: none */
	struct pair *pairs;
	int epoll;
};

static inline int listen_at(struct sockaddr_in *ret_at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t bytes = sizeof(*ret_at);

	*ret_at = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(fd, (struct sockaddr *)ret_at, sizeof(*ret_at)), 0);
	assert_int_equal(listen(fd, 1024), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret_at, &bytes), 0);
	return fd;
}

static inline struct pair connect_pair(int listener, const struct sockaddr_in *at)
{
	struct pair p = { .opened = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	int one = 1;

	assert_int_equal(connect(p.opened, (const struct sockaddr *)at, sizeof(*at)), 0);
	p.accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(p.accepted >= 0);
	setsockopt(p.opened, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(p.accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return p;
}

static inline void pass_byte(int from, int to)
{
	char byte = 'x';

	assert_int_equal(send(from, &byte, 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(to, &byte, 1, 0), 1);
}

/* A question and its answer. */
static inline void ask_and_answer(const struct pair *p)
{
	pass_byte(p->opened, p->accepted);
	pass_byte(p->accepted, p->opened);
}

static inline void close_pair(const struct pair *p)
{
	close(p->opened);
	close(p->accepted);
}

static inline void wait_in_poll(struct scene *s)
{
	/* In as many pages as it needs: a look does not read on behind the end of one. */
	_Alignas(4096) struct pollfd polled[MANY];

	for (size_t i = 0; i < s->count; i++)
		polled[i] = (struct pollfd){ .fd = s->fds[i], .events = POLLIN };
	for (;;)
		poll(polled, s->count, -1);
}

static inline void wait_in_select(struct scene *s)
{
	fd_set reads;
	int most = 0;

	for (;;) {
		FD_ZERO(&reads);
		for (size_t i = 0; i < s->count; i++) {
			FD_SET(s->fds[i], &reads);
			most = MAX(most, s->fds[i]);
		}
		select(most + 1, &reads, NULL, NULL, NULL);
	}
}

/* In io_uring_enter, for a completion that never comes. */
static inline void wait_in_ring(void)
{
	struct io_uring_params params = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 1, &params);

	for (;;)
		if (fd < 0)
			pause();
		else
			syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}

static inline void wait_in_set(void *context)
{
	struct scene *s = context;
	struct epoll_event e = { .events = EPOLLIN };
	pthread_t thread;

	if (s->what == LOOK_ON_POLL)
		wait_in_poll(s);
	if (s->what == LOOK_ON_SELECT)
		wait_in_select(s);
	if (s->what == LOOK_ON_OTHER)
		wait_in_ring();
	while (s->what == LOOK_ON_SOCKET)
		recv(s->fds[0], &thread, 1, MSG_PEEK);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < s->count; i++)
		if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->fds[i], &e) < 0)
			_exit(2);
	if (s->meanwhile && pthread_create(&thread, NULL, s->meanwhile, s))
		_exit(3);
	for (;;)
		epoll_wait(s->epoll, &e, 1, -1);
}

/* Begins the process, and looks at it when it waits in its set. */
static inline struct fixture begin_scene(struct scene *s, struct seen_look *ret_look)
{
	struct fixture f = begin_looks("sleep");

	harness_kill(f.pid);
	f.pid = harness_start(wait_in_set, s, f.dir);
	for (int i = 0; i < 100; i++) {
		read_asleep(f.h, f.pid, ret_look);
		if (ret_look->record.on.kind == s->what)
			break;
		harness_sleep_ms(10);
	}
	assert_int_equal(ret_look->record.on.kind, s->what);
	return f;
}

/* Returns a look's report of a set of these descriptors. */
static inline struct look_on look_at(uint32_t what, const int *fds, size_t count)
{
	struct scene s = { .count = count, .what = what };
	struct seen_look l;
	struct fixture f;

	memcpy(s.fds, fds, count * sizeof(*fds));
	f = begin_scene(&s, &l);
	end(&f);
	return l.record.on;
}

static inline struct look_on look_at_set(const int *fds, size_t count)
{
	return look_at(LOOK_ON_EPOLL, fds, count);
}

static inline void assert_nobody(const struct look_on *on)
{
	assert_int_equal(on->asked, 0);
	assert_int_equal(on->others, 0);
	assert_int_equal(on->peer_port, 0);
	assert_int_equal(on->longest_ns, 0);
}

#endif
