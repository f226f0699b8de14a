// SPDX-License-Identifier: BSD-2-Clause
/*
 * look_set.c: the peer that a thread in epoll or poll waits for, by the report of `looks`: of
 * connections that were opened from here and are asked something, their peer; of all others
 * nothing.
 */
#include "look_scene.h"

HARNESS_LOADS("looks", "ranges*");

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

/* The same of one connection, in recv(2): only the end that asked, until its answer is there. */
static void one_connection_in_recv(void **state)
{
	struct sockaddr_in at;
	int listener = listen_at(&at);
	struct pair p = connect_pair(listener, &at);
	struct look_on on = look_at(LOOK_ON_SOCKET, &p.opened, 1);

	assert_int_equal(on.asked, 0);
	pass_byte(p.opened, p.accepted);
	harness_sleep_ms(300);
	on = look_at(LOOK_ON_SOCKET, &p.opened, 1);
	assert_int_equal(on.asked, 1);
	assert_in_range(on.longest_ns, 290000000, 60000000000);
	on = look_at(LOOK_ON_SOCKET, &p.accepted, 1);
	assert_int_equal(on.asked, 0);
	pass_byte(p.accepted, p.opened);
	on = look_at(LOOK_ON_SOCKET, &p.opened, 1);
	assert_int_equal(on.asked, 0);
	/* The server's end has sent last. */
	on = look_at(LOOK_ON_SOCKET, &p.accepted, 1);
	assert_int_equal(on.asked, 0);
	assert_int_equal(on.longest_ns, 0);
	close_pair(&p);
	close(listener);
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

/* Of poll the first descriptors are judged like those of an epoll. */
static void poll_is_a_set_too(void **state)
{
	struct sockaddr_in at;
	int listener = listen_at(&at);
	struct pair p = connect_pair(listener, &at);
	int fds[LOOK_POLL_ITEMS + 1];
	struct look_on on;

	on = look_at(LOOK_ON_POLL, &p.opened, 1);
	assert_nobody(&on);
	assert_int_equal(on.sockets, 1);
	pass_byte(p.opened, p.accepted);
	on = look_at(LOOK_ON_POLL, &p.opened, 1);
	assert_int_equal(on.asked, 1);
	assert_int_equal(on.cut, 0);
	assert_int_equal(on.peer_port, ntohs(at.sin_port));
	on = look_at(LOOK_ON_POLL, (const int[]){ listener, -1, p.accepted }, 3);
	assert_nobody(&on);
	for (size_t i = 0; i < LOOK_POLL_ITEMS; i++)
		fds[i] = listener;
	fds[LOOK_POLL_ITEMS] = p.opened;
	on = look_at(LOOK_ON_POLL, fds, LOOK_POLL_ITEMS + 1);
	assert_nobody(&on);
	assert_int_equal(on.cut, 1);
	assert_int_equal(on.items, LOOK_POLL_ITEMS);
	close_pair(&p);
	close(listener);
}

static void a_ring_is_told_by_name(void **state)
{
	struct io_uring_params params = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 1, &params);
	struct look_on on;

	if (fd < 0) {
		print_message("this kernel lets nobody have a ring\n");
		skip();
	}
	close(fd);
	on = look_at(LOOK_ON_OTHER, NULL, 0);
	assert_string_equal(on.name, "[io_uring]");
}

/* Returns the shortest time of a pass with the set. */
static uint64_t time_pass(const int *fds, size_t count)
{
	struct scene s = { .count = count, .what = LOOK_ON_EPOLL };
	uint64_t shortest_ns = UINT64_MAX;
	struct seen_look l;
	struct fixture f;

	memcpy(s.fds, fds, count * sizeof(*fds));
	f = begin_scene(&s, &l);
	for (int i = 0; i < 50; i++) {
		uint64_t begun_ns = harness_now_ns();

		f.h->control->look_epoch++;
		read_looks(f.h, f.pid, &l);
		shortest_ns = MIN(shortest_ns, harness_now_ns() - begun_ns);
	}
	assert_int_equal(l.record.on.items, count);
	end(&f);
	return shortest_ns;
}

/* The bound is a wall against another order of magnitude, and holds on a busy machine. */
static void an_item_costs_little(void **state)
{
	struct rlimit files = { 4 * MANY, 4 * MANY };
	struct sockaddr_in at;
	int listener = listen_at(&at), asked[MANY], pipes[MANY], none = eventfd(0, EFD_CLOEXEC);
	uint64_t base_ns, asked_ns, pipe_ns;

	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		skip();
	for (size_t i = 0; i < MANY; i++) {
		struct pair p = connect_pair(listener, &at);

		pass_byte(p.opened, p.accepted);
		asked[i] = p.opened;
		pipes[i] = eventfd(0, EFD_CLOEXEC);
	}
	base_ns = time_pass(&none, 1);
	pipe_ns = time_pass(pipes, MANY);
	asked_ns = time_pass(asked, MANY);
	print_message("a pass over one item takes %" PRIu64 " us, over %d eventfds %" PRIu64
		      " us, over %d connections that ask %" PRIu64 " us\n",
		      base_ns / 1000, MANY, pipe_ns / 1000, MANY, asked_ns / 1000);
	assert_true(asked_ns < base_ns + MANY * 20000ull);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asked_waits_for_its_peer),
		cmocka_unit_test(one_connection_in_recv),
		cmocka_unit_test(who_is_answered_waits_for_nobody),
		cmocka_unit_test(who_asks_again_at_once_waits),
		cmocka_unit_test(only_connections_are_judged),
		cmocka_unit_test(poll_is_a_set_too),
		cmocka_unit_test(a_ring_is_told_by_name),
		cmocka_unit_test(an_item_costs_little),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
