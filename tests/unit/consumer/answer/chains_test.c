/* SPDX-License-Identifier: BSD-2-Clause */
/* The activity of awaited threads, link by link, from single waits. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "tests/unit/consumer/testing/chains_testing.h"

#include "consumer/answer/chain_links.h"
#include "shared/tools/macro.h"

#define MS   CHAINS_TESTING_MS
#define LOCK (WAIT_BLOCKED + WAIT_LOCK)
#define IO   (WAIT_BLOCKED + WAIT_IO)

#define API    10
#define INDEX  20
#define WRITER 30

static struct chains_testing t;

static int setup(void **state)
{
	memset(&t, 0, sizeof(t));
	return 0;
}

static struct chains make(void)
{
	struct chains c;

	assert_int_equal(chains_make(&t.all, NULL, NULL, NULL, &c), 0);
	return c;
}

static const struct chain *of(const struct chains *c, const char *comm)
{
	for (size_t i = 0; i < c->count; i++)
		if (!strcmp(c->items[i].links[0].comm, comm))
			return &c->items[i];
	fail_msg("no chain of %s", comm);
	return NULL;
}

static void check_link(const struct chain_link *link, const char *comm, uint8_t state, uint64_t ms)
{
	assert_string_equal(link->comm, comm);
	assert_int_equal(link->state, state);
	assert_int_equal(link->ns, ms * MS);
}

static void three_threads(void)
{
	chains_testing_thread(&t, API, CHAINS_TESTING_TGID, "api-7", 1000);
	chains_testing_thread(&t, INDEX, CHAINS_TESTING_TGID, "index-3", 1000);
	chains_testing_thread(&t, WRITER, CHAINS_TESTING_TGID, "writer-1", 1000);
}

/* Each link has only its part within the waits of the one before. */
static void test_locks_and_a_disk(void **state)
{
	const struct chain *chain;
	struct chains c;

	three_threads();
	chains_testing_wait(&t, API, ACCOUNT_LOCK, 100, 200, INDEX)->address = 0x1000;
	chains_testing_wait(&t, API, ACCOUNT_LOCK, 300, 400, INDEX)->address = 0x1000;
	chains_testing_wait(&t, INDEX, ACCOUNT_LOCK, 50, 190, WRITER)->address = 0x2000;
	chains_testing_wait(&t, INDEX, ACCOUNT_LOCK, 310, 390, WRITER)->address = 0x2000;
	chains_testing_wait(&t, WRITER, ACCOUNT_IO, 0, 180, 0);
	chains_testing_wait(&t, WRITER, ACCOUNT_IO, 320, 600, 0);
	c = make();
	chain = of(&c, "api-7");
	assert_int_equal(chain->count, 3);
	assert_int_equal(chain->end, CHAIN_END_INTERRUPT);
	check_link(&chain->links[0], "api-7", LOCK, 200);
	check_link(&chain->links[1], "index-3", LOCK, 90 + 80);
	check_link(&chain->links[2], "writer-1", IO, 80 + 70);
	assert_int_equal(chain->links[0].waits, 2);
	assert_false(chain->idle || c.partial);
	/* api-7's 150 of 200 ms, and of index-3's own 220 ms 130 and 70. */
	assert_in_range((int)(chain_links_behind(&c, LOCK, NULL, IO) * 1000), 832, 834);
	chains_done(&c);
}

/* A lock goes through a queue: the holder at each time is the next link, and not the waker. */
static void test_queue_for_one_lock(void **state)
{
	const struct chain *chain;
	struct chains c;

	for (uint32_t tid = 11; tid <= 14; tid++)
		chains_testing_thread(&t, tid, CHAINS_TESTING_TGID,
				      tid == 11 ? "reader-1" : "queue-2", 1000);
	chains_testing_thread(&t, WRITER, CHAINS_TESTING_TGID, "writer-1", 1000);
	for (uint32_t tid = 11; tid <= 14; tid++)
		chains_testing_wait(&t, tid, ACCOUNT_LOCK, 0, 104 - (tid - 10),
				    tid == 14 ? WRITER : tid + 1)
			->address = 0x1000;
	c = make();
	chain = of(&c, "reader-1");
	assert_int_equal(chain->count, 2);
	check_link(&chain->links[0], "reader-1", LOCK, 103);
	/* Each of the others had it for a millisecond. */
	check_link(&chain->links[1], "writer-1", WAIT_RUNS, 100);
	assert_int_equal(chain->end, CHAIN_END_RAN);
	chains_done(&c);
}

/* Of processes of one name that stand behind each other each has a lock of its own to sleep at. */
static void test_queue_of_processes(void **state)
{
	const struct chain *chain;
	struct chains c;

	for (uint32_t tid = 11; tid <= 19; tid++)
		chains_testing_thread(&t, tid, tid, "postgres", 1000);
	for (uint32_t tid = 11; tid <= 18; tid++) {
		struct long_wait *w = chains_testing_wait(&t, tid, ACCOUNT_LOCK, 0, 100, tid + 1);

		w->tgid = tid;
		w->address = 0x1000 * tid;
	}
	chains_testing_wait(&t, 19, ACCOUNT_IO, 0, 100, 0)->tgid = 19;
	c = make();
	chain = of(&c, "postgres");
	assert_int_equal(chain->count, 2);
	assert_int_equal(chain->links[0].threads, 8);
	check_link(&chain->links[1], "postgres", IO, 800);
	assert_int_equal(chain->links[1].tid, 19);
	assert_true(chain_links_behind(&c, LOCK, NULL, IO) == 1);
	chains_done(&c);
}

/* Threads of one name are one chain, whichever of them waited. */
static void test_threads_of_a_name(void **state)
{
	const struct chain *chain;
	struct chains c;

	for (uint32_t tid = 1; tid <= 12; tid++) {
		char comm[COMM_BYTES];

		snprintf(comm, sizeof(comm), "api-%u", tid);
		chains_testing_thread(&t, tid, CHAINS_TESTING_TGID, comm, 1000);
	}
	chains_testing_thread(&t, WRITER, CHAINS_TESTING_TGID, "writer-1", 1000);
	for (uint32_t tid = 1; tid <= 12; tid++)
		chains_testing_wait(&t, tid, ACCOUNT_PIPE, 10 * tid, 50 + 11 * tid, WRITER);
	c = make();
	assert_int_equal(c.count, 1);
	chain = &c.items[0];
	assert_int_equal(chain->links[0].threads, 12);
	assert_int_equal(chain->links[0].tid, 12); /* it waited longest */
	assert_int_equal(chain->links[0].ns, (600 + 78) * MS);
	assert_int_equal(chain->links[1].ns, (600 + 78) * MS);
	chains_done(&c);
}

/* What is no long wait is split as the thread's account is. */
static void test_ran(void **state)
{
	struct long_waits_thread *writer;
	const struct chain *chain;
	struct chains c;

	chains_testing_thread(&t, API, CHAINS_TESTING_TGID, "api-7", 1000);
	writer = chains_testing_thread(&t, WRITER, CHAINS_TESTING_TGID, "writer-1", 1000);
	writer->part_ns[ACCOUNT_RUNNING] = 100 * MS;
	writer->part_ns[ACCOUNT_QUEUE] = 300 * MS;
	chains_testing_wait(&t, API, ACCOUNT_LOCK, 100, 200, WRITER);
	/* Of its 1000 ms 500 are long waits: 100 are left, in short ones. */
	chains_testing_wait(&t, WRITER, ACCOUNT_SLEEP, 400, 900, 0);
	c = make();
	chain = of(&c, "api-7");
	assert_int_equal(chain->count, 2);
	check_link(&chain->links[1], "writer-1", WAIT_RUNS, 100);
	assert_int_equal(chain->links[1].running_ns, 20 * MS);
	assert_int_equal(chain->links[1].queue_ns, 60 * MS);
	assert_int_equal(chain->links[1].short_ns, 20 * MS);
	assert_true(chain_links_behind(&c, LOCK, NULL, WAIT_FOR_CPU) > 0.599);
	chains_done(&c);
}

static enum chain_end end_of(enum long_wait_end end, uint32_t by, enum account_part part)
{
	struct long_wait *w;
	enum chain_end found;
	struct chains c;

	setup(NULL);
	chains_testing_thread(&t, API, CHAINS_TESTING_TGID, "api-7", 1000);
	chains_testing_thread(&t, WRITER, 78, "child", 1000);
	w = chains_testing_wait(&t, API, part, 100, 200, by);
	w->end = (uint8_t)end;
	strcpy(w->by_comm, "kworker/u4:1");
	c = make();
	assert_int_equal(c.count, 1);
	if (c.items[0].end == CHAIN_END_KERNEL || c.items[0].end == CHAIN_END_OUTSIDE)
		assert_string_equal(c.items[0].end_comm, "kworker/u4:1");
	found = c.items[0].end;
	chains_done(&c);
	return found;
}

static void test_ends(void **state)
{
	assert_int_equal(end_of(LONG_WAIT_INTERRUPT, 0, ACCOUNT_IO), CHAIN_END_INTERRUPT);
	assert_int_equal(end_of(LONG_WAIT_KERNEL, 5, ACCOUNT_IO), CHAIN_END_KERNEL);
	assert_int_equal(end_of(LONG_WAIT_KERNEL, 0, ACCOUNT_IO), CHAIN_END_UNKNOWN);
	assert_int_equal(end_of(LONG_WAIT_THREAD, 5, ACCOUNT_PIPE), CHAIN_END_OUTSIDE);
	assert_int_equal(end_of(LONG_WAIT_THREAD, 0, ACCOUNT_PIPE), CHAIN_END_UNKNOWN);
	assert_int_equal(end_of(LONG_WAIT_SIGNAL, WRITER, ACCOUNT_LOCK), CHAIN_END_SIGNAL);
	/* The end of a child is a signal for its handler. */
	assert_int_equal(end_of(LONG_WAIT_SIGNAL, WRITER, ACCOUNT_CHILD), CHAIN_END_RAN);
	assert_int_equal(end_of(LONG_WAIT_OPEN, 0, ACCOUNT_LOCK), CHAIN_END_OPEN);
	assert_string_equal(chain_links_end(CHAIN_END_CYCLE), "cycle");
}

/* Two threads wait for each other until the time of one is up. */
static void test_cycle(void **state)
{
	const struct chain *chain;
	struct chains c;

	three_threads();
	chains_testing_wait(&t, API, ACCOUNT_LOCK, 100, 200, INDEX)->address = 0x1000;
	chains_testing_wait(&t, INDEX, ACCOUNT_LOCK, 100, 199, API)->address = 0x2000;
	c = make();
	chain = of(&c, "api-7");
	assert_int_equal(chain->count, 2);
	assert_int_equal(chain->end, CHAIN_END_CYCLE);
	assert_string_equal(chain->end_comm, "api-7");
	chains_done(&c);
}

/* After five links it is cut, and marked. */
static void test_cut(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g" };
	const struct chain *chain;
	struct chains c;

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		chains_testing_thread(&t, i + 1, CHAINS_TESTING_TGID, names[i], 1000);
	for (uint32_t i = 0; i + 1 < ARRAY_SIZE(names); i++)
		chains_testing_wait(&t, i + 1, ACCOUNT_PIPE, 10, 100, i + 2);
	c = make();
	chain = of(&c, "a");
	assert_int_equal(chain->count, CHAINS_LINKS);
	check_link(&chain->links[4], "e", WAIT_BLOCKED + WAIT_PIPE, 90);
	assert_int_equal(chain->end, CHAIN_END_CUT);
	chain = of(&c, "c");
	assert_int_equal(chain->count, 5);
	assert_int_equal(chain->end, CHAIN_END_RAN);
	chains_done(&c);
}

/* Of three ways none has enough: without its identity. */
static void test_several(void **state)
{
	const struct chain *chain;
	struct chains c;

	chains_testing_thread(&t, API, CHAINS_TESTING_TGID, "api-7", 1000);
	chains_testing_thread(&t, 21, CHAINS_TESTING_TGID, "x", 1000);
	chains_testing_thread(&t, 22, CHAINS_TESTING_TGID, "y", 1000);
	chains_testing_thread(&t, 23, CHAINS_TESTING_TGID, "z", 1000);
	for (uint32_t i = 0; i < 3; i++)
		chains_testing_wait(&t, API, ACCOUNT_PIPE, 100 * i, 100 * i + 90, 21 + i);
	c = make();
	chain = of(&c, "api-7");
	assert_int_equal(chain->count, 1);
	assert_int_equal(chain->end, CHAIN_END_SEVERAL);
	chains_done(&c);
}

static struct wait_places places;

static void put_place(uint32_t tgid, const char *comm, uint8_t part, uint8_t judged, bool idle,
		      bool condition)
{
	struct stack stack = { .tgid = tgid, .wait = part, .phase = PHASE_DURING };
	const struct known_wait wait = { .state = judged, .idle = idle, .condition = condition };

	stack.weight_ns = 100 * MS;
	snprintf(stack.comm, sizeof(stack.comm), "%s", comm);
	wait_places_add(&places, &stack, &wait);
}

/* A thread that waits for one that has nothing to do waits for work. */
static void test_work(void **state)
{
	struct chains c;

	wait_places_init(&places);
	chains_testing_thread(&t, API, CHAINS_TESTING_TGID, "worker-1", 1000);
	chains_testing_thread(&t, INDEX, CHAINS_TESTING_TGID, "acceptor", 1000);
	chains_testing_thread(&t, WRITER, CHAINS_TESTING_TGID, "timer", 1000);
	put_place(CHAINS_TESTING_TGID, "worker-1", LOCK, LOCK, false, true);
	chains_testing_wait(&t, API, ACCOUNT_LOCK, 0, 400, INDEX);
	chains_testing_wait(&t, INDEX, ACCOUNT_IDLE, 0, 399, 0);
	assert_int_equal(chains_make(&t.all, NULL, NULL, &places, &c), 0);
	assert_int_equal(c.count, 1);
	assert_true(c.items[0].idle && c.items[0].links[0].condition);
	assert_null(chain_links_find(&c, LOCK, NULL));
	chains_done(&c);
	/*
	 * So does a thread that waits on a condition variable for a sleeping one, but not for a
	 * lock.
	 */
	t.waits[0].by_tid = WRITER;
	t.waits[1].tid = WRITER;
	t.waits[1].part = ACCOUNT_SLEEP;
	assert_int_equal(chains_make(&t.all, NULL, NULL, &places, &c), 0);
	assert_true(of(&c, "worker-1")->idle);
	chains_done(&c);
	assert_int_equal(chains_make(&t.all, NULL, NULL, NULL, &c), 0);
	assert_false(of(&c, "worker-1")->idle);
	assert_non_null(chain_links_find(&c, LOCK, NULL));
	chains_done(&c);
	wait_places_done(&places);
}

/* A wait in epoll that its functions call one for a lock is one, and begins a chain. */
static void test_judged(void **state)
{
	const struct chain *chain;
	struct chains c;

	wait_places_init(&places);
	chains_testing_thread(&t, API, CHAINS_TESTING_TGID, "postgres", 1000);
	chains_testing_thread(&t, INDEX, 78, "postgres", 1000);
	put_place(CHAINS_TESTING_TGID, "postgres", WAIT_BLOCKED + WAIT_IDLE, LOCK, false, false);
	chains_testing_wait(&t, API, ACCOUNT_IDLE, 0, 400, INDEX);
	chains_testing_wait(&t, INDEX, ACCOUNT_IDLE, 0, 100, 0)->tgid = 78;
	assert_int_equal(chains_make(&t.all, NULL, NULL, &places, &c), 0);
	assert_int_equal(c.count, 1);
	chain = chain_links_find(&c, LOCK, NULL);
	assert_non_null(chain);
	check_link(&chain->links[0], "postgres", LOCK, 400);
	assert_non_null(chain->links[0].place);
	check_link(&chain->links[1], "postgres", WAIT_RUNS, 300);
	chains_done(&c);
	wait_places_done(&places);
}

/*
 * A lock is one of its own where several want it; else its waiters are reported by their threads.
 */
static void test_locks(void **state)
{
	struct lock_waited items[] = {
		{ .lock = { .address = 0x1000, .tgid = CHAINS_TESTING_TGID }, .threads = 2 },
		{ .lock = { .address = 0x2000, .tgid = CHAINS_TESTING_TGID }, .threads = 1 },
		{ .lock = { .address = 0x3000, .tgid = CHAINS_TESTING_TGID }, .threads = 1 },
	};
	struct lock_waits locks = { .items = items, .count = ARRAY_SIZE(items) };
	const struct lock_name names[] = { {}, {}, { .symbol = "queue" } };
	struct chains c;

	three_threads();
	for (uint32_t i = 0; i < 3; i++)
		chains_testing_wait(&t, API, ACCOUNT_LOCK, 100 * i, 100 * i + 50, WRITER)->address =
			0x1000 * (i + 1);
	assert_int_equal(chains_make(&t.all, &locks, names, NULL, &c), 0);
	assert_int_equal(c.count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(c.items[i].links[0].lock != 2);
	chains_done(&c);
}

/* More ways than there are steps for: the longest waits are walked, the rest is counted. */
static void test_many(void **state)
{
	const uint32_t roots = 480, naps = 7000;
	uint64_t all_ns = 0;
	struct chains c;

	for (uint32_t i = 0; i < roots; i++)
		chains_testing_thread(&t, 100 + i, CHAINS_TESTING_TGID, "api", 9000);
	chains_testing_thread(&t, 600, CHAINS_TESTING_TGID, "writer", 9000);
	for (uint32_t i = 0; i < roots; i++) {
		const struct long_wait *w =
			chains_testing_wait(&t, 100 + i, ACCOUNT_PIPE, 0, 8000 + i, 600);

		all_ns += w->end_ns - w->begin_ns;
	}
	for (uint32_t k = 0; k < naps; k++)
		chains_testing_wait(&t, 600, ACCOUNT_SLEEP, k, k + 1, 0);
	c = make();
	assert_true(c.partial);
	assert_int_equal(c.ns, all_ns);
	assert_true(c.unwalked_ns > 0 && c.unwalked_ns < all_ns);
	/* The link has the walked part, and its awaited thread. */
	assert_int_equal(c.items[0].links[0].ns, all_ns - c.unwalked_ns);
	assert_int_equal(c.items[0].count, 2);
	assert_int_equal(c.items[0].links[1].state, WAIT_BLOCKED + WAIT_SLEEP);
	chains_done(&c);
}

/* Waits without room are reported. */
static void test_partial(void **state)
{
	struct chains c;

	three_threads();
	chains_testing_wait(&t, API, ACCOUNT_PIPE, 0, 100, WRITER);
	t.all.ledger.lost[DROP_LONG_WAITS_FULL] = 1;
	c = make();
	assert_true(c.partial);
	chains_done(&c);
}

UNIT_TESTS(chains)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_locks_and_a_disk, setup),
		cmocka_unit_test_setup(test_queue_for_one_lock, setup),
		cmocka_unit_test_setup(test_queue_of_processes, setup),
		cmocka_unit_test_setup(test_threads_of_a_name, setup),
		cmocka_unit_test_setup(test_ran, setup),
		cmocka_unit_test_setup(test_ends, setup),
		cmocka_unit_test_setup(test_cycle, setup),
		cmocka_unit_test_setup(test_cut, setup),
		cmocka_unit_test_setup(test_several, setup),
		cmocka_unit_test_setup(test_work, setup),
		cmocka_unit_test_setup(test_judged, setup),
		cmocka_unit_test_setup(test_locks, setup),
		cmocka_unit_test_setup(test_many, setup),
		cmocka_unit_test_setup(test_partial, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
