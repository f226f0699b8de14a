// SPDX-License-Identifier: BSD-2-Clause
/*
 * socket.c: the reports of looks for known TCP sockets, each number against the test's own actions.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "socket_fixture.h"

HARNESS_LOADS("socket*");

/* Both ends of a connection: its opener, the unread bytes of each end, and the sent ones. */
static void connections_are_told(void **state)
{
	static const int families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		struct fixture *f = begin(NULL);
		struct worker *a = begin_worker(f->dir), *b = begin_worker(f->dir);
		struct answer at = tell(b, (struct order){ DO_LISTEN, families[i], 8, 0 });
		struct pair p = connect_workers(a, b, at.result, at.port, families[i]);
		const struct socket_record *opened, *accepted;

		assert_int_equal(tell(a, (struct order){ DO_SEND, p.opened, 5000, 0 }).result,
				 5000);
		assert_int_equal(tell(b, (struct order){ DO_READ, p.accepted, 2000, 0 }).result,
				 2000);
		look(f);
		assert_int_equal(f->told.count, 3);
		opened = find_told(f, p.port, STATE_ESTABLISHED);
		accepted = find_told(f, at.port, STATE_ESTABLISHED);
		assert_non_null(opened);
		assert_non_null(accepted);
		assert_int_equal(opened->way, SOCKET_OPENED);
		assert_int_equal(opened->peer_port, at.port);
		assert_int_equal(opened->family, families[i]);
		assert_int_equal(opened->tgid, a->pid);
		assert_int_equal(opened->bytes_out, 5000);
		assert_int_equal(opened->bytes_in, 0);
		assert_int_equal(opened->unread, 0);
		assert_int_equal(opened->unsent + opened->unacked, 0);
		assert_int_equal(opened->retransmits, 0);
		assert_in_range(opened->segments, 1, 8);
		assert_in_range(opened->srtt_us, 1, 1000000);
		assert_int_equal(accepted->way, SOCKET_ACCEPTED);
		assert_int_equal(accepted->peer_port, p.port);
		assert_int_equal(accepted->tgid, b->pid);
		assert_int_equal(accepted->bytes_in, 5000);
		assert_int_equal(accepted->unread, 3000);
		assert_int_equal(accepted->flags, 0);
		assert_true(accepted->inode && accepted->inode != opened->inode);
		assert_true(accepted->net && accepted->net == opened->net);
		assert_memory_equal(opened->peer, accepted->local, sizeof(opened->peer));
		end_worker(a);
		end_worker(b);
		end(f);
	}
}

/* The end of a stream is no byte that came. */
static void ends_are_no_bytes(void **state)
{
	struct fixture *f = begin(NULL);
	struct worker *a = begin_worker(f->dir), *b = begin_worker(f->dir);
	struct answer at = tell(b, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	struct pair p = connect_workers(a, b, at.result, at.port, AF_INET);
	const struct socket_record *accepted;

	tell(a, (struct order){ DO_SEND, p.opened, 500, 0 });
	tell(a, (struct order){ DO_CLOSE, p.opened, 0, 0 });
	look(f);
	accepted = find_told(f, at.port, STATE_CLOSE_WAIT);
	assert_non_null(accepted);
	assert_int_equal(accepted->bytes_in, 500);
	assert_int_equal(accepted->unread, 500);
	tell(b, (struct order){ DO_READ, p.accepted, 500, 0 });
	look(f);
	assert_int_equal(find_told(f, at.port, STATE_CLOSE_WAIT)->unread, 0);
	end_worker(a);
	end_worker(b);
	end(f);
}

/* A connection that was made over IPv6 to an address of 4 bytes has that address. */
static void mapped_addresses_are_of_four_bytes(void **state)
{
	static const uint8_t loopback[16] = { 127, 0, 0, 1 };
	struct fixture *f = begin(NULL);
	struct worker *w = begin_worker(f->dir);
	struct answer at = tell(w, (struct order){ DO_LISTEN, AF_UNSPEC, 8, 0 });
	struct pair p = connect_workers(w, w, at.result, at.port, AF_INET);
	const struct socket_record *accepted, *listens;

	look(f);
	accepted = find_told(f, at.port, STATE_ESTABLISHED);
	listens = find_told(f, at.port, STATE_LISTEN);
	assert_int_equal(accepted->family, AF_INET);
	assert_memory_equal(accepted->local, loopback, sizeof(loopback));
	assert_memory_equal(accepted->peer, loopback, sizeof(loopback));
	assert_int_equal(accepted->peer_port, p.port);
	assert_int_equal(listens->family, AF_INET6);
	end_worker(w);
	end(f);
}

/* What is written to a peer that does not read waits here, the rest there. */
static void full_windows_are_told(void **state)
{
	struct fixture *f = begin(NULL);
	struct worker *a = begin_worker(f->dir), *b = begin_worker(f->dir);
	struct answer at = tell(b, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	struct pair p = connect_workers(a, b, at.result, at.port, AF_INET);
	const struct socket_record *opened, *accepted;
	int sent = 0;

	for (int i = 0; i < 50; i++) {
		sent += tell(a, (struct order){ DO_SEND, p.opened, 64 << 20, 0 }).result;
		harness_sleep_ms(10);
	}
	look(f);
	opened = find_told(f, p.port, STATE_ESTABLISHED);
	accepted = find_told(f, at.port, STATE_ESTABLISHED);
	assert_true(opened->flags & SOCKET_PEER_FULL);
	assert_false(opened->flags & SOCKET_OWN_FULL);
	assert_true(accepted->flags & SOCKET_OWN_FULL);
	assert_false(accepted->flags & SOCKET_PEER_FULL);
	assert_true(opened->unsent > 0 && accepted->unread > 0);
	assert_int_equal(accepted->unread + opened->unacked + opened->unsent, sent);
	assert_int_equal(opened->bytes_out, accepted->bytes_in + opened->unacked);
	harness_sleep_ms(300);
	look(f);
	assert_in_range(find_told(f, p.port, STATE_ESTABLISHED)->out_ms, 250, 5000);
	assert_in_range(find_told(f, at.port, STATE_ESTABLISHED)->in_ms, 250, 5000);
	end_worker(a);
	end_worker(b);
	end(f);
}

/* A listener without accept(2): its queue is full, and later clients are dropped. */
static void listeners_are_told(void **state)
{
	enum { BACKLOG = 3 };
	struct fixture *f = begin(NULL);
	struct worker *w = begin_worker(f->dir);
	struct answer at = tell(w, (struct order){ DO_LISTEN, AF_INET, BACKLOG, 0 });
	const struct socket_record *listens;
	int fds[BACKLOG + 4];
	uint64_t dropped;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		struct sockaddr_storage to;
		int bytes = make_address(AF_INET, at.port, &to);

		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fds[i], (struct sockaddr *)&to, (socklen_t)bytes);
	}
	harness_sleep_ms(100);
	look(f);
	listens = find_told(f, at.port, STATE_LISTEN);
	assert_non_null(listens);
	assert_int_equal(listens->way, SOCKET_LISTENS);
	/* The kernel takes one more than was asked for (sk_acceptq_is_full). */
	assert_int_equal(listens->queue, BACKLOG + 1);
	assert_int_equal(listens->queue_max, BACKLOG);
	assert_int_equal(listens->peer_port, 0);
	dropped = listens->drops;
	assert_in_range(dropped, 1, 100);
	/* They ask again after a second. */
	harness_sleep_ms(1500);
	look(f);
	listens = find_told(f, at.port, STATE_LISTEN);
	assert_true(listens->drops > dropped);
	assert_int_equal(find_sums(f, SOCKET_LISTENS, AF_INET, at.port).counts[SOCKET_DROPS],
			 listens->drops - dropped);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	end_worker(w);
	end(f);
}

/* Has children allowed so many descriptors. False where that is not to be had. */
static bool allow_descriptors(rlim_t most)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = most;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* A process with thousands of descriptors is reported in steps, each socket once. */
static void many_descriptors_take_several_reads(void **state)
{
	enum { MANY = 1500, COPIES = 3000 };
	struct fixture *f = begin(NULL);
	struct worker *w;
	struct answer at;
	size_t listeners = 0;

	assert_true(allow_descriptors(MANY + COPIES + 1000));
	w = begin_worker(f->dir);
	at = tell(w, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	tell(w, (struct order){ DO_DUPLICATE, at.result, COPIES, 0 });
	for (int i = 0; i < MANY / 2; i++)
		connect_workers(w, w, at.result, at.port, AF_INET);
	look(f);
	for (size_t i = 0; i < f->told.count; i++)
		listeners += f->told.items[i].state == STATE_LISTEN;
	assert_int_equal(listeners, 1);
	assert_int_equal(f->told.count, 1 + MANY);
	assert_in_range(f->told.reads, (MANY + COPIES) / (SOCKET_STEP_WORK / 2), 100);
	assert_in_range(f->told.most, 1, SOCKET_STEP_WORK / 2);
	print_message("# %d descriptors of %d sockets: %zu reads in %.2f ms, the longest %.2f ms\n",
		      MANY + COPIES, MANY, f->told.reads, (double)f->told.cpu_ns / 1e6,
		      (double)f->told.longest_ns / 1e6);
	for (int i = 0; i < SOCKET_LOSSES_; i++)
		assert_int_equal(read_losses(f).lost[i], 0);
	end_worker(w);
	end(f);
}

/* What is beyond a bound of a pass is counted, and nothing else is lost. */
static void bounds_hold(void **state)
{
	enum { COPIES = 3000, SOCKETS = 10 };
	static const struct {
		struct harness_options options;
		enum socket_loss loss;
		uint32_t least, most;
	} cases[] = {
		/* What the harness has open counts too; a word of 64 is walked as a whole. */
		{ { .socket_files = 1000 },
		  SOCKET_LOST_FILES,
		  COPIES - 1000 - 64,
		  COPIES - 1000 + 300 },
		{ { .socket_pass_files = 1000 },
		  SOCKET_LOST_FILES,
		  COPIES - 1000 - 64,
		  COPIES - 1000 + 300 },
		{ { .socket_pass_sockets = 5 },
		  SOCKET_LOST_SOCKETS,
		  SOCKETS + 1 - 5,
		  SOCKETS + 1 - 5 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = begin(&cases[i].options);
		struct worker *w;
		struct answer at;
		struct slot_sockets losses;

		assert_true(allow_descriptors(COPIES + SOCKETS + 1000));
		w = begin_worker(f->dir);
		at = tell(w, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
		for (int k = 0; k < SOCKETS / 2; k++)
			connect_workers(w, w, at.result, at.port, AF_INET);
		tell(w, (struct order){ DO_DUPLICATE, at.result, COPIES, 0 });
		look(f);
		assert_int_equal(f->told.count,
				 cases[i].loss == SOCKET_LOST_SOCKETS ? 5 : SOCKETS + 1);
		losses = read_losses(f);
		assert_in_range(losses.lost[cases[i].loss], cases[i].least, cases[i].most);
		for (int k = 0; k < SOCKET_LOSSES_; k++)
			assert_true(k == (int)cases[i].loss || !losses.lost[k]);
		end_worker(w);
		end(f);
	}
}

/* A socket that a child has too is reported once. */
static void shared_sockets_are_told_once(void **state)
{
	struct fixture *f = begin(NULL);
	struct worker *w = begin_worker(f->dir);
	struct answer at = tell(w, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	pid_t child;

	connect_workers(w, w, at.result, at.port, AF_INET);
	child = tell(w, (struct order){ DO_FORK, 0, 0, 0 }).result;
	assert_true(child > 0);
	look(f);
	assert_int_equal(f->told.count, 3);
	look(f);
	assert_int_equal(f->told.count, 3);
	kill(child, SIGKILL);
	end_worker(w);
	end(f);
}

static void enter_namespace(void *context)
{
	if (unshare(CLONE_NEWNET) < 0)
		_exit(1);
	work(context);
}

/* The network namespace of the reader does not matter. */
static void every_namespace_is_looked_at(void **state)
{
	struct fixture *f = begin(NULL);
	struct worker *here = begin_worker(f->dir), there = {};
	struct answer own = tell(here, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	struct answer other;

	assert_int_equal(pipe(there.orders), 0);
	assert_int_equal(pipe(there.answers), 0);
	there.pid = harness_start(enter_namespace, &there, f->dir);
	other = tell(&there, (struct order){ DO_LISTEN, AF_UNSPEC, 8, 0 });
	assert_true(other.result >= 0);
	look(f);
	assert_int_equal(f->told.count, 2);
	assert_true(find_told(f, own.port, STATE_LISTEN)->net !=
		    find_told(f, other.port, STATE_LISTEN)->net);
	harness_kill(there.pid);
	end_worker(here);
	end(f);
}

/* Processes in no watch with a session are not reported. */
static void nobody_else_is_told_of(void **state)
{
	struct fixture *f = begin(NULL);
	struct worker *w = begin_worker(f->dir), *other = begin_worker(f->other_dir);
	struct answer at = tell(w, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	struct answer there = tell(other, (struct order){ DO_LISTEN, AF_INET, 8, 0 });

	look(f);
	assert_non_null(find_told(f, at.port, STATE_LISTEN));
	assert_null(find_told(f, there.port, STATE_LISTEN));
	f->h->slots[SLOT].state = SLOT_RECORDER;
	assert_int_equal(look(f)->count, 0);
	f->h->slots[SLOT].state = SLOT_CAPTURE;
	assert_int_equal(look(f)->count, 1);
	f->h->control->sockets = 0;
	assert_int_equal(look(f)->count, 0);
	end_worker(w);
	end_worker(other);
	end(f);
}

/* With a scope the consumer may enter any cgroup into `watches`: none outside is reported. */
static void scope_hides_others(void **state)
{
	const struct harness_options scoped = { .scoped = true };
	struct fixture *f = begin(&scoped);
	struct worker *w = begin_worker(f->dir), *other = begin_worker(f->other_dir);
	struct answer at = tell(w, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	struct answer there = tell(other, (struct order){ DO_LISTEN, AF_INET, 8, 0 });

	harness_scope(f->h, strstr(f->dir, f->h->path));
	harness_watch(f->h, f->other_id, SLOT, SLOT_CAPTURE, 0);
	attach_state(f);
	look(f);
	assert_non_null(find_told(f, at.port, STATE_LISTEN));
	/* The name of the other one begins with that of the first, so it is in the scope. */
	assert_non_null(find_told(f, there.port, STATE_LISTEN));
	end_worker(w);
	end_worker(other);
	end(f);
	f = begin(&scoped);
	harness_scope(f->h, "/no.slice");
	attach_state(f);
	w = begin_worker(f->dir);
	at = tell(w, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	connect_workers(w, w, at.result, at.port, AF_INET);
	assert_int_equal(look(f)->count, 0);
	end_worker(w);
	assert_int_equal(count_elements(f->h->skel->maps.socket_sums), 0);
	assert_int_equal(count_elements(f->h->skel->maps.socket_open), 0);
	end(f);
}

/* A socket that another cgroup's process made, and that this one has: what happens to it is not
 * seen. */
static void foreign_sockets_are_marked(void **state)
{
	struct fixture *f = begin(NULL);
	int ours = listen_here(AF_INET, 8);
	struct worker *w = begin_worker(f->dir);
	struct answer at = tell(w, (struct order){ DO_LISTEN, AF_INET, 8, 0 });

	look(f);
	assert_int_equal(find_told(f, at.port, STATE_LISTEN)->flags & SOCKET_FOREIGN, 0);
	assert_true(find_told(f, port_of(ours), STATE_LISTEN)->flags & SOCKET_FOREIGN);
	close(ours);
	end_worker(w);
	end(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_are_told),
		cmocka_unit_test(ends_are_no_bytes),
		cmocka_unit_test(mapped_addresses_are_of_four_bytes),
		cmocka_unit_test(full_windows_are_told),
		cmocka_unit_test(listeners_are_told),
		cmocka_unit_test(many_descriptors_take_several_reads),
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(shared_sockets_are_told_once),
		cmocka_unit_test(every_namespace_is_looked_at),
		cmocka_unit_test(nobody_else_is_told_of),
		cmocka_unit_test(scope_hides_others),
		cmocka_unit_test(foreign_sockets_are_marked),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
