// SPDX-License-Identifier: BSD-2-Clause
/*
 * look_unix.c: the report of unix sockets and of UDP, alone and in the set of an epoll, poll or
 * select, and the kinds of a set's members.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "look_scene.h"

#define WAIT_NS 60000000000ull /* for a thread that runs at once on any other machine */

HARNESS_LOADS("looks", "ranges*");

/* A listener at a name of ours; abstract where it begins with '@'. */
static int listen_locally(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(at.sun_path, name);
	if (name[0] == '@')
		at.sun_path[0] = 0;
	else
		unlink(name);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, bytes), 0);
	assert_int_equal(listen(fd, 64), 0);
	return fd;
}

static struct pair connect_locally(int listener)
{
	struct pair p = { .opened = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	struct sockaddr_un at;
	socklen_t bytes = sizeof(at);

	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
	assert_int_equal(connect(p.opened, (struct sockaddr *)&at, bytes), 0);
	p.accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(p.accepted >= 0);
	return p;
}

static void make_path(char path[64])
{
	snprintf(path, 64, "/tmp/trocar_look_unix_%d.sock", getpid());
}

static void receive(void *fd)
{
	char byte;

	for (;;)
		recv(*(int *)fd, &byte, 1, 0);
}

/* Returns a look's report of a thread in recv(2). */
static struct look_on look_at_receiver(int fd)
{
	struct fixture f = begin_looks("sleep");
	struct seen_look l;

	harness_kill(f.pid);
	f.pid = harness_start(receive, &fd, f.dir);
	for (int i = 0; i < 100; i++) {
		read_asleep(f.h, f.pid, &l);
		if (l.record.on.kind == LOOK_ON_SOCKET)
			break;
		harness_sleep_ms(10);
	}
	assert_int_equal(l.record.on.kind, LOOK_ON_SOCKET);
	end(&f);
	return l.record.on;
}

/* Both ends of a connection, by path and by an abstract name, and a pair without names. */
static void ends_are_told(void **state)
{
	char path[64], comm[COMM_BYTES] = "";
	struct look_on on;
	int locals[2];

	make_path(path);
	pthread_getname_np(pthread_self(), comm, sizeof(comm));
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "@trocar_look_unix" : path;
		int listener = listen_locally(name);
		struct pair p = connect_locally(listener);

		on = look_at_receiver(p.opened);
		assert_int_equal(on.family, AF_UNIX);
		assert_int_equal(on.end, LOOK_END_OPENED);
		assert_string_equal(on.path, name);
		assert_int_equal(on.peer_pid, getpid());
		assert_string_equal(on.peer_comm, comm);
		assert_int_equal(on.unread, 0);
		assert_int_equal(send(p.opened, "x", 1, 0), 1);
		on = look_at_receiver(p.opened);
		assert_int_equal(on.unread, 1);
		on = look_at_receiver(p.accepted);
		/* The byte is there: it is read, and the end waits for the next one. */
		assert_int_equal(on.end, LOOK_END_SERVED);
		assert_string_equal(on.path, name);
		close_pair(&p);
		close(listener);
	}
	unlink(path);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, locals), 0);
	on = look_at_receiver(locals[0]);
	assert_int_equal(on.end, LOOK_END_UNKNOWN);
	assert_string_equal(on.path, "");
	assert_int_equal(on.peer_pid, getpid());
	close(locals[0]);
	close(locals[1]);
}

/*
 * Who opened the other end may be outside of the loader's --scope: then the opener is not reported.
 */
static void a_scope_hides_who_opened_it(void **state)
{
	const struct harness_options options = { .scoped = true };
	struct harness *h = harness_new(&options);
	char dir[4096], scope[4200];
	struct seen_look l;
	int locals[2];
	uint64_t id;
	pid_t pid;

	snprintf(scope, sizeof(scope), "%s/within", h->path);
	harness_scope(h, scope);
	id = harness_group(h, "within", dir);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, locals), 0);
	pid = harness_start(receive, &locals[0], dir);
	harness_watch(h, id, SLOT, SLOT_CAPTURE, 0);
	h->slots[SLOT].looked = 1;
	for (int i = 0; i < 100; i++) {
		read_asleep(h, pid, &l);
		if (l.record.on.kind == LOOK_ON_SOCKET)
			break;
		harness_sleep_ms(10);
	}
	assert_int_equal(l.record.on.family, AF_UNIX);
	assert_int_equal(l.record.on.peer_pid, 0);
	assert_string_equal(l.record.on.peer_comm, "");
	harness_kill(pid);
	close(locals[0]);
	close(locals[1]);
	harness_free(h);
}

/* In a set they are counted, and the first that was opened from here is named. */
static void sets_count_and_name(void **state)
{
	static const uint32_t kinds[] = { LOOK_ON_EPOLL, LOOK_ON_POLL, LOOK_ON_SELECT };
	char path[64];
	int listener, locals[2];
	struct pair p, q;
	struct look_on on;

	make_path(path);
	listener = listen_locally(path);
	p = connect_locally(listener);
	q = connect_locally(listener);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, locals), 0);
	assert_int_equal(send(q.opened, "x", 1, 0), 1);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const int fds[] = { listener, locals[0], p.opened, q.opened };

		on = look_at(kinds[i], fds, ARRAY_SIZE(fds));
		assert_nobody(&on);
		assert_int_equal(on.items, 4);
		assert_int_equal(on.kinds[LOOK_MEMBER_UNIX], 4);
		assert_int_equal(on.unix_opened, 2);
		assert_int_equal(on.unread, 1);
		assert_string_equal(on.path, path);
		assert_int_equal(on.peer_pid, getpid());
		assert_int_equal(on.family, 0);
	}
	close_pair(&p);
	close_pair(&q);
	close(listener);
	close(locals[0]);
	close(locals[1]);
	unlink(path);
}

/* Who waits for one connection alone waits for its peer; in an epoll that is not reported. */
static void one_alone_is_asked(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(53),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), listener;
	struct look_on on;
	struct pair p;
	char path[64];

	make_path(path);
	listener = listen_locally(path);
	p = connect_locally(listener);
	for (uint32_t what = LOOK_ON_POLL; what <= LOOK_ON_SELECT; what++) {
		on = look_at(what, &p.opened, 1);
		assert_int_equal(on.family, AF_UNIX);
		assert_int_equal(on.asked, 1);
		assert_string_equal(on.path, path);
		on = look_at(what, &p.accepted, 1);
		assert_nobody(&on);
	}
	on = look_at_set(&p.opened, 1);
	assert_nobody(&on);
	on = look_at(LOOK_ON_POLL, &udp, 1);
	assert_nobody(&on);
	assert_int_equal(on.kinds[LOOK_MEMBER_UDP], 1);
	assert_int_equal(connect(udp, (struct sockaddr *)&at, sizeof(at)), 0);
	on = look_at(LOOK_ON_POLL, &udp, 1);
	assert_int_equal(on.asked, 1);
	assert_int_equal(on.protocol, IPPROTO_UDP);
	assert_int_equal(on.peer_port, 53);
	assert_memory_equal(on.peer, &at.sin_addr, 4);
	on = look_at(LOOK_ON_POLL, (const int[]){ udp, listener }, 2);
	assert_nobody(&on);
	close(udp);
	close_pair(&p);
	close(listener);
	unlink(path);
}

static void kinds_are_told(void **state)
{
	static const uint32_t kinds[] = { LOOK_ON_EPOLL, LOOK_ON_POLL, LOOK_ON_SELECT };
	struct sockaddr_in at;
	sigset_t none;
	int pipes[2];

	sigemptyset(&none);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		int fds[] = { listen_at(&at),
			      socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0),
			      pipes[0],
			      eventfd(0, EFD_CLOEXEC),
			      timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC),
			      signalfd(-1, &none, SFD_CLOEXEC),
			      epoll_create1(EPOLL_CLOEXEC) };
		static const uint32_t members[] = { LOOK_MEMBER_TCP,   LOOK_MEMBER_SOCKET,
						    LOOK_MEMBER_PIPE,  LOOK_MEMBER_EVENT,
						    LOOK_MEMBER_TIMER, LOOK_MEMBER_SIGNAL,
						    LOOK_MEMBER_EPOLL };
		struct look_on on = look_at(kinds[i], fds, ARRAY_SIZE(fds));

		assert_int_equal(on.items, ARRAY_SIZE(fds));
		assert_int_equal(on.cut, 0);
		for (size_t j = 0; j < ARRAY_SIZE(members); j++)
			assert_int_equal(on.kinds[members[j]], 1);
		for (size_t j = 0; j < ARRAY_SIZE(fds); j++)
			if (fds[j] != pipes[0])
				close(fds[j]);
	}
	close(pipes[0]);
	close(pipes[1]);
}

/* Descriptors after the first ones are left out, and the report is marked. */
static void many_are_cut(void **state)
{
	int fds[LOOK_POLL_ITEMS + 1];
	struct look_on on;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = eventfd(0, EFD_CLOEXEC);
	on = look_at(LOOK_ON_SELECT, fds, LOOK_POLL_ITEMS);
	assert_int_equal(on.items, LOOK_POLL_ITEMS);
	assert_int_equal(on.cut, 0);
	on = look_at(LOOK_ON_SELECT, fds, LOOK_POLL_ITEMS + 1);
	assert_int_equal(on.items, LOOK_POLL_ITEMS);
	assert_int_equal(on.cut, 1);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

static int changing; /* the listener of change_connections */

/* Opens and closes connections in the set all the time. */
static void *change_connections(void *context)
{
	struct scene *s = context;
	struct epoll_event e = { .events = EPOLLERR };

	for (;;) {
		struct sockaddr_un at;
		socklen_t bytes = sizeof(at);
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), other;

		getsockname(changing, (struct sockaddr *)&at, &bytes);
		if (connect(fd, (struct sockaddr *)&at, bytes) < 0)
			_exit(4);
		other = accept4(changing, NULL, NULL, SOCK_CLOEXEC);
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e);
		close(fd);
		close(other);
	}
	return NULL;
}

/* The report of sockets that are closed in the meantime is right or empty. */
static void closed_ones_tell_nothing_wrong(void **state)
{
	int idle = eventfd(0, EFD_CLOEXEC), named = 0;
	uint64_t begin_ns = harness_now_ns();
	struct scene s = { .count = 1, .what = LOOK_ON_EPOLL, .meanwhile = change_connections };
	struct seen_look l;
	struct fixture f;
	char path[64];

	make_path(path);
	changing = listen_locally(path);
	s.fds[0] = idle;
	f = begin_scene(&s, &l);
	/* So often, and on a busy machine until the other thread has come to run meanwhile. */
	for (int i = 0; i < 3000 || (!named && harness_now_ns() - begin_ns < WAIT_NS); i++) {
		const struct look_on *on = &l.record.on;

		f.h->control->look_epoch++;
		read_looks(f.h, f.pid, &l);
		if (on->kind != LOOK_ON_EPOLL)
			continue;
		if (on->path[0])
			assert_string_equal(on->path, path);
		if (on->peer_pid)
			assert_true(on->peer_pid == (uint32_t)f.pid ||
				    on->peer_pid == (uint32_t)getpid());
		named += on->path[0] != 0;
	}
	print_message("named in %d looks\n", named);
	assert_true(named > 0);
	end(&f);
	close(changing);
	close(idle);
	unlink(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_told),
		cmocka_unit_test(a_scope_hides_who_opened_it),
		cmocka_unit_test(sets_count_and_name),
		cmocka_unit_test(one_alone_is_asked),
		cmocka_unit_test(kinds_are_told),
		cmocka_unit_test(many_are_cut),
		cmocka_unit_test(closed_ones_tell_nothing_wrong),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
