// SPDX-License-Identifier: BSD-2-Clause
/*
 * socket_state.c: the counts of connections as they begin, fail and end, between looks and at them,
 * each number against the test's own actions.
 */
#include "socket_fixture.h"

HARNESS_LOADS("socket*");

#define TIMES 20

static uint64_t count_steps(const uint32_t steps[QUEUE_BUCKETS])
{
	uint64_t n = 0;

	for (int i = 0; i < QUEUE_BUCKETS; i++)
		n += steps[i];
	return n;
}

/* Connections without a look in their life are counted to the byte, at both ends. */
static void short_connections_are_counted(void **state)
{
	static const int families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		struct fixture *f = begin(NULL);
		struct worker *a = begin_worker(f->dir), *b = begin_worker(f->dir);
		struct answer at = tell(b, (struct order){ DO_LISTEN, families[i], 8, 0 });
		uint64_t began_ns = harness_now_ns(), lasted_ns;
		struct socket_sums opened, accepted;

		attach_state(f);
		for (int k = 0; k < TIMES; k++) {
			struct pair p = connect_workers(a, b, at.result, at.port, families[i]);

			tell(a, (struct order){ DO_SEND, p.opened, 1000, 0 });
			tell(b, (struct order){ DO_READ, p.accepted, 1000, 0 });
			tell(b, (struct order){ DO_SEND, p.accepted, 300, 0 });
			tell(a, (struct order){ DO_READ, p.opened, 300, 0 });
			tell(a, (struct order){ DO_CLOSE, p.opened, 0, 0 });
			tell(b, (struct order){ DO_CLOSE, p.accepted, 0, 0 });
		}
		lasted_ns = harness_now_ns() - began_ns;
		opened = find_sums(f, SOCKET_OPENED, (uint8_t)families[i], at.port);
		accepted = find_sums(f, SOCKET_ACCEPTED, (uint8_t)families[i], at.port);
		assert_int_equal(opened.counts[SOCKET_BEGUN], TIMES);
		assert_int_equal(opened.counts[SOCKET_ENDED], TIMES);
		assert_int_equal(opened.counts[SOCKET_UNSEEN], 0);
		assert_int_equal(opened.counts[SOCKET_RESET] + opened.counts[SOCKET_LOST], 0);
		assert_int_equal(opened.counts[SOCKET_BYTES_OUT], TIMES * 1000);
		assert_int_equal(accepted.counts[SOCKET_BYTES_OUT], TIMES * 300);
		assert_int_equal(opened.counts[SOCKET_BYTES_IN], TIMES * 300);
		assert_int_equal(accepted.counts[SOCKET_BYTES_IN], TIMES * 1000);
		assert_int_equal(accepted.counts[SOCKET_BEGUN], TIMES);
		assert_int_equal(accepted.counts[SOCKET_ENDED], TIMES);
		assert_int_equal(accepted.counts[SOCKET_CONNECT_NS], 0);
		assert_int_equal(count_steps(opened.connect), TIMES);
		assert_int_equal(count_steps(opened.life), TIMES);
		assert_int_equal(count_steps(accepted.connect), 0);
		assert_int_equal(count_steps(accepted.life), TIMES);
		assert_in_range(opened.counts[SOCKET_LIFE_NS] + opened.counts[SOCKET_CONNECT_NS], 1,
				lasted_ns);
		assert_int_equal(count_elements(f->h->skel->maps.socket_open), 0);
		end_worker(a);
		end_worker(b);
		end(f);
	}
}

/* An older connection counts from the first look that met it. */
static void older_connections_count_from_a_look_on(void **state)
{
	struct fixture *f = begin(NULL);
	struct worker *a = begin_worker(f->dir), *b = begin_worker(f->dir);
	struct answer at = tell(b, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	struct pair seen = connect_workers(a, b, at.result, at.port, AF_INET), unseen;
	struct socket_sums opened;

	attach_state(f);
	tell(a, (struct order){ DO_SEND, seen.opened, 5000, 0 });
	look(f);
	opened = find_sums(f, SOCKET_OPENED, AF_INET, at.port);
	assert_int_equal(opened.counts[SOCKET_BYTES_OUT], 0);
	tell(a, (struct order){ DO_SEND, seen.opened, 700, 0 });
	look(f);
	opened = find_sums(f, SOCKET_OPENED, AF_INET, at.port);
	assert_int_equal(opened.counts[SOCKET_BYTES_OUT], 700);
	assert_int_equal(find_told(f, seen.port, STATE_ESTABLISHED)->begun_ns, 0);
	tell(a, (struct order){ DO_SEND, seen.opened, 60, 0 });
	tell(b, (struct order){ DO_READ, seen.accepted, 5760, 0 });
	tell(a, (struct order){ DO_CLOSE, seen.opened, 0, 0 });
	tell(b, (struct order){ DO_CLOSE, seen.accepted, 0, 0 });
	opened = find_sums(f, SOCKET_OPENED, AF_INET, at.port);
	assert_int_equal(opened.counts[SOCKET_BYTES_OUT], 760);
	assert_int_equal(opened.counts[SOCKET_ENDED], 1);
	assert_int_equal(opened.counts[SOCKET_UNSEEN], 0);
	assert_int_equal(count_steps(opened.life), 0);
	/* One that begins without a counter, and that no look meets. */
	bpf_link__destroy(f->state);
	unseen = connect_workers(a, b, at.result, at.port, AF_INET);
	attach_state(f);
	tell(a, (struct order){ DO_CLOSE, unseen.opened, 0, 0 });
	tell(b, (struct order){ DO_CLOSE, unseen.accepted, 0, 0 });
	opened = find_sums(f, SOCKET_OPENED, AF_INET, at.port);
	assert_int_equal(opened.counts[SOCKET_ENDED], 1);
	assert_int_equal(opened.counts[SOCKET_BYTES_OUT], 760);
	assert_int_equal(read_losses(f).rest[SOCKET_ENDED], 2);
	assert_int_equal(read_losses(f).rest[SOCKET_UNSEEN], 2);
	end_worker(a);
	end_worker(b);
	end(f);
}

/* A look at a connection that was met at its begin knows when that was. */
static void begins_are_told(void **state)
{
	struct fixture *f = begin(NULL);
	struct worker *w = begin_worker(f->dir);
	struct answer at = tell(w, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	uint64_t before_ns, after_ns;
	struct pair p;

	attach_state(f);
	before_ns = harness_now_ns();
	p = connect_workers(w, w, at.result, at.port, AF_INET);
	after_ns = harness_now_ns();
	tell(w, (struct order){ DO_SEND, p.opened, 10, 0 });
	look(f);
	assert_in_range(find_told(f, p.port, STATE_ESTABLISHED)->begun_ns, before_ns, after_ns);
	assert_in_range(find_told(f, at.port, STATE_ESTABLISHED)->begun_ns, before_ns, after_ns);
	assert_int_equal(find_sums(f, SOCKET_OPENED, AF_INET, at.port).counts[SOCKET_BYTES_OUT],
			 10);
	look(f);
	assert_int_equal(find_sums(f, SOCKET_OPENED, AF_INET, at.port).counts[SOCKET_BYTES_OUT],
			 10);
	end_worker(w);
	end(f);
}

/* Connections that do not come about, by why. */
static void failures_are_counted(void **state)
{
	struct fixture *f = begin(NULL);
	struct worker *w = begin_worker(f->dir);
	int listener = listen_here(AF_INET, 1), nobody;
	uint16_t full = port_of(listener), refusing;
	struct socket_sums sums;

	/* A port that was just given up refuses. */
	nobody = listen_here(AF_INET, 1);
	refusing = port_of(nobody);
	close(nobody);
	attach_state(f);
	for (int i = 0; i < TIMES; i++)
		assert_int_equal(tell(w, (struct order){ DO_CONNECT, AF_INET, 0, refusing }).result,
				 -ECONNREFUSED);
	sums = find_sums(f, SOCKET_OPENED, AF_INET, refusing);
	assert_int_equal(sums.counts[SOCKET_REFUSED], TIMES);
	assert_int_equal(sums.counts[SOCKET_BEGUN] + sums.counts[SOCKET_ENDED], 0);
	/* A full listener does not answer. */
	for (int i = 0; i < 2; i++)
		assert_true(tell(w, (struct order){ DO_CONNECT, AF_INET, 0, full }).result >= 0);
	assert_int_equal(tell(w, (struct order){ DO_TRY, AF_INET, 0, full }).result, 0);
	assert_int_equal(tell(w, (struct order){ DO_WAIT_OUT, AF_INET, 1, full }).result,
			 -ETIMEDOUT);
	sums = find_sums(f, SOCKET_OPENED, AF_INET, full);
	assert_int_equal(sums.counts[SOCKET_BEGUN], 2);
	assert_int_equal(sums.counts[SOCKET_GIVEN_UP], 1);
	assert_int_equal(sums.counts[SOCKET_TIMED_OUT], 1);
	close(listener);
	end_worker(w);
	end(f);
}

/* A reset is distinguished from an end, at the side that is reset. */
static void resets_are_counted(void **state)
{
	struct fixture *f = begin(NULL);
	struct worker *a = begin_worker(f->dir), *b = begin_worker(f->dir);
	struct answer at = tell(b, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	struct socket_sums opened, accepted;

	attach_state(f);
	for (int i = 0; i < TIMES; i++) {
		struct pair p = connect_workers(a, b, at.result, at.port, AF_INET);

		tell(b, (struct order){ DO_RESET, p.accepted, 0, 0 });
		tell(a, (struct order){ DO_CLOSE, p.opened, 0, 0 });
	}
	opened = find_sums(f, SOCKET_OPENED, AF_INET, at.port);
	accepted = find_sums(f, SOCKET_ACCEPTED, AF_INET, at.port);
	assert_int_equal(opened.counts[SOCKET_ENDED], TIMES);
	assert_int_equal(opened.counts[SOCKET_RESET], TIMES);
	assert_int_equal(accepted.counts[SOCKET_ENDED], TIMES);
	assert_int_equal(accepted.counts[SOCKET_RESET], 0);
	end_worker(a);
	end_worker(b);
	end(f);
}

/* Time in which the peer has no room is counted, as long as it lasts. */
static void full_time_is_counted(void **state)
{
	struct fixture *f = begin(NULL);
	struct worker *a = begin_worker(f->dir), *b = begin_worker(f->dir);
	struct answer at = tell(b, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
	struct pair p = connect_workers(a, b, at.result, at.port, AF_INET);
	uint64_t began_ns, took_ns, full_ns;

	for (int i = 0; i < 30; i++) {
		tell(a, (struct order){ DO_SEND, p.opened, 64 << 20, 0 });
		harness_sleep_ms(10);
	}
	look(f);
	full_ns = find_sums(f, SOCKET_OPENED, AF_INET, at.port).counts[SOCKET_FULL_NS];
	began_ns = harness_now_ns();
	harness_sleep_ms(1000);
	took_ns = harness_now_ns() - began_ns;
	look(f);
	full_ns = find_sums(f, SOCKET_OPENED, AF_INET, at.port).counts[SOCKET_FULL_NS] - full_ns;
	assert_in_range(full_ns, took_ns - took_ns / 20, took_ns + took_ns / 5);
	end_worker(a);
	end_worker(b);
	end(f);
}

/* A dead consumer gets no reports, nor does one without a session. */
static void dead_consumer_is_told_nothing(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct fixture *f = begin(NULL);
		struct worker *w = begin_worker(f->dir);
		struct answer at = tell(w, (struct order){ DO_LISTEN, AF_INET, 8, 0 });

		if (i)
			f->h->slots[SLOT].state = SLOT_RECORDER;
		else
			f->h->control->stale_ns = 1;
		attach_state(f);
		connect_workers(w, w, at.result, at.port, AF_INET);
		end_worker(w);
		assert_int_equal(count_elements(f->h->skel->maps.socket_sums), 0);
		assert_int_equal(count_elements(f->h->skel->maps.socket_open), 0);
		end(f);
	}
}

/* Without sessions a reading empties the tables. */
static void tables_are_emptied(void **state)
{
	struct fixture *f = begin(NULL);
	struct worker *w = begin_worker(f->dir);
	struct answer at = tell(w, (struct order){ DO_LISTEN, AF_INET, 8, 0 });

	attach_state(f);
	for (int i = 0; i < 100; i++)
		connect_workers(w, w, at.result, at.port, AF_INET);
	look(f);
	assert_int_equal(count_elements(f->h->skel->maps.socket_sums), 3);
	assert_int_equal(count_elements(f->h->skel->maps.socket_open), 201);
	f->h->control->sockets = 0;
	look(f);
	assert_int_equal(f->told.count, 0);
	assert_int_equal(count_elements(f->h->skel->maps.socket_sums), 0);
	assert_int_equal(count_elements(f->h->skel->maps.socket_open), 0);
	end_worker(w);
	end(f);
}

/* What finds no room in one of the tables is counted, and no sum is lost with its peer. */
static void losses_are_counted(void **state)
{
	const struct harness_options full[] = { { .socket_open = 1 }, { .socket_sums = 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(full); i++) {
		struct fixture *f = begin(&full[i]);
		struct worker *w = begin_worker(f->dir);
		struct answer at = tell(w, (struct order){ DO_LISTEN, AF_INET, 8, 0 });
		struct slot_sockets losses;
		uint64_t begun;

		look(f); /* the listener takes the one place */
		attach_state(f);
		for (int k = 0; k < TIMES; k++) {
			struct pair p = connect_workers(w, w, at.result, at.port, AF_INET);

			tell(w, (struct order){ DO_SEND, p.opened, 100, 0 });
		}
		look(f);
		losses = read_losses(f);
		begun = find_sums(f, SOCKET_OPENED, AF_INET, at.port).counts[SOCKET_BEGUN] +
			find_sums(f, SOCKET_ACCEPTED, AF_INET, at.port).counts[SOCKET_BEGUN] +
			losses.rest[SOCKET_BEGUN];
		assert_int_equal(begun, 2 * TIMES);
		assert_int_equal(losses.rest[SOCKET_BYTES_OUT], i ? TIMES * 100 : 0);
		if (i)
			assert_true(losses.lost[SOCKET_LOST_PEERS] > 0);
		else
			assert_true(losses.lost[SOCKET_LOST_OPEN] >= 2 * TIMES);
		assert_int_equal(losses.lost[SOCKET_LOST_FILES], 0);
		end_worker(w);
		end(f);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_connections_are_counted),
		cmocka_unit_test(older_connections_count_from_a_look_on),
		cmocka_unit_test(begins_are_told),
		cmocka_unit_test(failures_are_counted),
		cmocka_unit_test(resets_are_counted),
		cmocka_unit_test(full_time_is_counted),
		cmocka_unit_test(dead_consumer_is_told_nothing),
		cmocka_unit_test(tables_are_emptied),
		cmocka_unit_test(losses_are_counted),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
