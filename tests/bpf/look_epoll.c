// SPDX-License-Identifier: BSD-2-Clause
/*
 * look_epoll.c: for whom an epoll waits, by what `looks` tells of a thread in it: of connections
 * that were opened from here and are asked something, their peer; of all others nothing; and of a
 * set that others change meanwhile nothing that was never true.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "look_fixture.h"

#define PAIRS 12

/* Both ends of a connection to a listener of ours. */
struct pair {
	int opened, accepted;
};

/* What the process that is looked at waits for. */
struct scene {
	int fds[2 * PAIRS + 2];
	size_t count;
	void *(*meanwhile)(void *scene); /* in a thread of its own; NULL: none */
	struct pair *pairs;
	int epoll;
};

static int listen_at(struct sockaddr_in *ret_at)
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

static struct pair connect_pair(int listener, const struct sockaddr_in *at)
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

static void pass_byte(int from, int to)
{
	char byte = 'x';

	assert_int_equal(send(from, &byte, 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(to, &byte, 1, 0), 1);
}

/* A question and its answer. */
static void ask_and_answer(const struct pair *p)
{
	pass_byte(p->opened, p->accepted);
	pass_byte(p->accepted, p->opened);
}

static void close_pair(const struct pair *p)
{
	close(p->opened);
	close(p->accepted);
}

static void wait_in_epoll(void *context)
{
	struct scene *s = context;
	struct epoll_event e = { .events = EPOLLIN };
	pthread_t thread;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < s->count; i++)
		if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->fds[i], &e) < 0)
			_exit(2);
	if (s->meanwhile && pthread_create(&thread, NULL, s->meanwhile, s))
		_exit(3);
	for (;;)
		epoll_wait(s->epoll, &e, 1, -1);
}

/* Begins the process, and looks at it when it waits in its epoll. */
static struct fixture begin_scene(struct scene *s, struct seen_look *ret_look)
{
	struct fixture f = begin_looks("sleep");

	harness_kill(f.pid);
	f.pid = harness_start(wait_in_epoll, s, f.dir);
	for (int i = 0; i < 100; i++) {
		read_asleep(f.h, f.pid, ret_look);
		if (ret_look->record.on.kind == LOOK_ON_EPOLL)
			break;
		harness_sleep_ms(10);
	}
	assert_int_equal(ret_look->record.on.kind, LOOK_ON_EPOLL);
	return f;
}

/* Returns what a look tells of an epoll of these descriptors. */
static struct look_on look_at_set(const int *fds, size_t count)
{
	struct scene s = { .count = count };
	struct seen_look l;
	struct fixture f;

	memcpy(s.fds, fds, count * sizeof(*fds));
	f = begin_scene(&s, &l);
	end(&f);
	return l.record.on;
}

static void assert_nobody(const struct look_on *on)
{
	assert_int_equal(on->asked, 0);
	assert_int_equal(on->others, 0);
	assert_int_equal(on->peer_port, 0);
	assert_int_equal(on->longest_ns, 0);
}

static void who_asked_waits_for_its_peer(void **state)
{
	struct sockaddr_in at, other;
	int listener = listen_at(&at), another = listen_at(&other);
	struct pair p = connect_pair(listener, &at), q = connect_pair(listener, &at),
		    r = connect_pair(another, &other), idle = connect_pair(listener, &at);
	const int fds[] = { p.opened, q.opened, r.opened, idle.opened, listener };
	struct look_on on;

	ask_and_answer(&q);
	harness_sleep_ms(300);
	pass_byte(p.opened, p.accepted);
	harness_sleep_ms(300);
	pass_byte(q.opened, q.accepted);
	pass_byte(r.opened, r.accepted);
	on = look_at_set(fds, 5);
	assert_int_equal(on.asked, 2);
	assert_int_equal(on.others, 1);
	assert_int_equal(on.sockets, 4);
	assert_int_equal(on.items, 5);
	assert_int_equal(on.cut, 0);
	assert_int_equal(on.family, AF_INET);
	assert_int_equal(on.peer_port, ntohs(at.sin_port));
	assert_memory_equal(on.peer, &at.sin_addr, 4);
	/* Since the older question: a jiffy less at most, and the look came soon after. */
	assert_in_range(on.longest_ns, 290000000, 5000000000);
	close_pair(&p);
	close_pair(&q);
	close_pair(&r);
	close_pair(&idle);
	close(listener);
	close(another);
}

/* Answered connections, one without any question, one that was accepted: a server, or a pool. */
static void who_is_answered_waits_for_nobody(void **state)
{
	struct sockaddr_in at;
	int listener = listen_at(&at);
	struct pair p[PAIRS];
	int fds[2 * PAIRS + 1] = { listener };
	struct look_on on;

	for (size_t i = 0; i < PAIRS; i++) {
		p[i] = connect_pair(listener, &at);
		/* Mostly all in one jiffy. */
		for (size_t j = 0; j < i; j++)
			ask_and_answer(&p[i]);
		fds[1 + 2 * i] = p[i].opened;
		fds[2 + 2 * i] = p[i].accepted;
	}
	on = look_at_set(fds, 2 * PAIRS + 1);
	assert_nobody(&on);
	assert_int_equal(on.sockets, PAIRS);
	assert_int_equal(on.items, 2 * PAIRS + 1);
	for (size_t i = 0; i < PAIRS; i++)
		close_pair(&p[i]);
	close(listener);
}

/* The next question in the same jiffy as the answer before: a proxy under load. */
static void who_asks_again_at_once_waits(void **state)
{
	struct sockaddr_in at;
	int listener = listen_at(&at);
	struct pair p[PAIRS];
	int fds[PAIRS];
	struct look_on on;

	for (size_t i = 0; i < PAIRS; i++) {
		p[i] = connect_pair(listener, &at);
		fds[i] = p[i].opened;
	}
	for (size_t i = 0; i < PAIRS; i++) {
		ask_and_answer(&p[i]);
		pass_byte(p[i].opened, p[i].accepted);
	}
	harness_sleep_ms(100);
	on = look_at_set(fds, PAIRS);
	assert_int_equal(on.asked, PAIRS);
	for (size_t i = 0; i < PAIRS; i++)
		close_pair(&p[i]);
	close(listener);
}

/* Pipes, eventfds, other epolls, even one that asks: nothing is followed into them. */
static void only_connections_are_judged(void **state)
{
	struct sockaddr_in at;
	int listener = listen_at(&at), inner = epoll_create1(EPOLL_CLOEXEC), pipes[2], locals[2];
	struct pair p = connect_pair(listener, &at);
	struct epoll_event e = { .events = EPOLLIN };
	struct look_on on;

	pass_byte(p.opened, p.accepted);
	assert_int_equal(epoll_ctl(inner, EPOLL_CTL_ADD, p.opened, &e), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, locals), 0);
	on = look_at_set((const int[]){ inner, pipes[0], eventfd(0, EFD_CLOEXEC), locals[0] }, 4);
	assert_nobody(&on);
	assert_int_equal(on.items, 4);
	assert_int_equal(on.sockets, 0);
	close_pair(&p);
	close(inner);
	close(listener);
}

#define MANY 3000

static void *add_many(void *context)
{
	const struct scene *s = context;
	struct epoll_event e = { .events = EPOLLIN };

	for (int i = 0; i < MANY; i++)
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, eventfd(0, EFD_CLOEXEC), &e);
	pause();
	return NULL;
}

static void a_large_set_is_cut(void **state)
{
	struct scene s = { .meanwhile = add_many };
	struct rlimit files = { 2 * MANY, 2 * MANY };
	struct seen_look l;
	struct fixture f;

	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		skip();
	f = begin_scene(&s, &l);
	for (int i = 0; i < 500 && !l.record.on.cut; i++) {
		harness_sleep_ms(10);
		f.h->control->look_epoch++;
		read_looks(f.h, f.pid, &l);
	}
	assert_int_equal(l.record.on.cut, 1);
	assert_in_range(l.record.on.items, LOOK_EPOLL_ITEMS - 64, LOOK_EPOLL_ITEMS);
	assert_nobody(&l.record.on);
	end(&f);
}

/*
 * Adds and removes the connections, closes and opens them again, and has the table of files grow
 * and the epoll's descriptor closed, as fast as it can.
 */
static void *change_all(void *context)
{
	struct scene *s = context;
	struct epoll_event e = { .events = EPOLLIN };

	for (unsigned int n = 0; n < UINT32_MAX; n++) {
		const struct pair *p = &s->pairs[n % PAIRS];
		int copy = dup(p->opened), far;

		epoll_ctl(s->epoll, EPOLL_CTL_ADD, copy, &e);
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->pairs[n * 7 % PAIRS].opened, &e);
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->pairs[n * 5 % PAIRS].opened, &e);
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, copy, &e);
		far = fcntl(copy, F_DUPFD_CLOEXEC, (int)(n % 900));
		close(far);
		close(copy);
		/* The other thread waits in an epoll that its descriptor does not lead to. */
		if (n % 64 == 0) {
			copy = dup(s->epoll);
			close(s->epoll);
			dup2(s->pairs[0].opened, s->epoll);
			dup2(copy, s->epoll);
			close(copy);
		}
	}
	return NULL;
}

static void nothing_untrue_is_told(void **state)
{
	struct sockaddr_in at;
	int listener = listen_at(&at);
	struct pair p[PAIRS];
	struct scene s = { .meanwhile = change_all, .pairs = p };
	struct seen_look l;
	struct fixture f;
	size_t told = 0;

	for (size_t i = 0; i < PAIRS; i++) {
		p[i] = connect_pair(listener, &at);
		pass_byte(p[i].opened, p[i].accepted);
		s.fds[s.count++] = p[i].opened;
	}
	f = begin_scene(&s, &l);
	for (int i = 0; i < 3000; i++) {
		const struct look_on *on = &l.record.on;

		f.h->control->look_epoch++;
		read_looks(f.h, f.pid, &l);
		if (!l.told || on->kind != LOOK_ON_EPOLL || !on->peer_port)
			continue;
		told++;
		assert_int_equal(on->family, AF_INET);
		assert_int_equal(on->peer_port, ntohs(at.sin_port));
		assert_memory_equal(on->peer, &at.sin_addr, 4);
		assert_int_equal(on->others, 0);
		assert_in_range(on->asked, 1, on->sockets);
		assert_in_range(on->sockets, 1, on->items);
		assert_in_range(on->items, 1, 2 * PAIRS);
	}
	print_message("%zu of 3000 looks told of a peer\n", told);
	assert_true(told > 0);
	end(&f);
	for (size_t i = 0; i < PAIRS; i++)
		close_pair(&p[i]);
	close(listener);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asked_waits_for_its_peer),
		cmocka_unit_test(who_is_answered_waits_for_nobody),
		cmocka_unit_test(who_asks_again_at_once_waits),
		cmocka_unit_test(only_connections_are_judged),
		cmocka_unit_test(a_large_set_is_cut),
		cmocka_unit_test(nothing_untrue_is_told),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
