// SPDX-License-Identifier: BSD-2-Clause
/*
 * look_epoll.c: the report of `looks` for an epoll that is large, that many threads wait in, or
 * that others change in the meantime: nothing that was never true.
 */
#include "look_scene.h"

HARNESS_LOADS("looks", "ranges*");

static void *add_many(void *context)
{
	const struct scene *s = context;
	struct epoll_event e = { .events = EPOLLIN };

	for (int i = 0; i < 3 * MANY; i++)
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, eventfd(0, EFD_CLOEXEC), &e);
	pause();
	return NULL;
}

static void a_large_set_is_cut(void **state)
{
	struct scene s = { .meanwhile = add_many, .what = LOOK_ON_EPOLL };
	struct rlimit files = { 4 * MANY, 4 * MANY };
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
	struct scene s = { .meanwhile = change_all, .pairs = p, .what = LOOK_ON_EPOLL };
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
		/* Each connection under its descriptor and that of its copy: none is met twice. */
		assert_in_range(on->items, 1, 2 * PAIRS);
	}
	print_message("%zu of 3000 looks told of a peer\n", told);
	assert_true(told > 0);
	end(&f);
	for (size_t i = 0; i < PAIRS; i++)
		close_pair(&p[i]);
	close(listener);
}

/* While the first thread waits, its descriptor becomes that of another epoll, which asks. */
static void *replace_epoll(void *context)
{
	const struct scene *s = context;
	struct epoll_event e = { .events = EPOLLIN };
	int other = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(other, EPOLL_CTL_ADD, s->pairs->opened, &e);
	harness_sleep_ms(300);
	dup2(other, s->epoll);
	pause();
	return NULL;
}

static void another_epoll_at_the_descriptor_is_not_told_of(void **state)
{
	struct sockaddr_in at;
	int listener = listen_at(&at);
	struct pair p = connect_pair(listener, &at);
	struct scene s = { .meanwhile = replace_epoll,
			   .pairs = &p,
			   .what = LOOK_ON_EPOLL,
			   .fds = { listener },
			   .count = 1 };
	struct seen_look l;
	struct fixture f;

	pass_byte(p.opened, p.accepted);
	f = begin_scene(&s, &l);
	assert_int_equal(l.record.on.items, 1);
	assert_int_equal(l.record.on.cut, 0);
	harness_sleep_ms(600);
	f.h->control->look_epoch++;
	read_looks(f.h, f.pid, &l);
	assert_true(l.told);
	assert_int_equal(l.record.on.kind, LOOK_ON_EPOLL);
	assert_nobody(&l.record.on);
	assert_int_equal(l.record.on.items, 0);
	assert_int_equal(l.record.on.cut, 1);
	end(&f);
	close_pair(&p);
	close(listener);
}

static void *wait_too(void *context)
{
	const struct scene *s = context;
	struct epoll_event e;

	for (;;)
		epoll_wait(s->epoll, &e, 1, -1);
	return NULL;
}

static void *start_more(void *context)
{
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, wait_too, context);
	return NULL;
}

/* All threads of a set are reported with its peer, though it is walked once. */
static void many_threads_wait_in_one(void **state)
{
	struct sockaddr_in at;
	int listener = listen_at(&at);
	struct pair p = connect_pair(listener, &at);
	struct scene s = { .meanwhile = start_more,
			   .what = LOOK_ON_EPOLL,
			   .fds = { p.opened, listener },
			   .count = 2 };
	_cleanup_free_ char *bytes = NULL;
	struct look_record record;
	struct seen_look l;
	struct fixture f;
	size_t n, told = 0;

	pass_byte(p.opened, p.accepted);
	f = begin_scene(&s, &l);
	harness_sleep_ms(300);
	f.h->control->look_epoch++;
	n = harness_read(f.h->skel->progs.looks, &bytes);
	for (size_t i = 0; i + sizeof(record.head) <= n; i += record.head.bytes) {
		memcpy(&record.head, bytes + i, sizeof(record.head));
		if (record.head.flags & LOOK_PAUSE)
			continue;
		memcpy(&record, bytes + i, sizeof(record));
		assert_int_equal(record.on.asked, 1);
		assert_int_equal(record.on.items, 2);
		told++;
	}
	assert_int_equal(told, 5);
	end(&f);
	close_pair(&p);
	close(listener);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_set_is_cut),
		cmocka_unit_test(nothing_untrue_is_told),
		cmocka_unit_test(another_epoll_at_the_descriptor_is_not_told_of),
		cmocka_unit_test(many_threads_wait_in_one),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
