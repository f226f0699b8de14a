/* SPDX-License-Identifier: BSD-2-Clause */
/* Long waits of a session, from a real map and known accounts. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/evidence/locks/long_waits.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <unistd.h>

#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define SLOT  2
#define OUTER 1
#define MS    NSEC_PER_MSEC

static struct pinned_maps pins;
static struct slot slots[SLOT + 2];
static struct thread_account accounts[8];
static struct open_wait open_waits[8];
static struct thread_accounts all;
static struct long_waits_source source;
static uint32_t number;

static int setup(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, options);

	memset(slots, 0, sizeof(slots));
	slots[SLOT].outer = OUTER + 1;
	pins = (struct pinned_maps){ .slots = slots };
	pins.abi.slots = ARRAY_SIZE(slots);
	pins.signal_fd[PINNED_MAP_long_waits] = bpf_map_create(
		BPF_MAP_TYPE_HASH, "unit", 4, sizeof(struct long_wait), 4096, &options);
	all = (struct thread_accounts){ .items = accounts, .end_ns = 1000 * MS };
	all.open.items = open_waits;
	source = (struct long_waits_source){
		.pins = &pins, .slot = SLOT, .start_ns = 100 * MS, .accounts = &all
	};
	return 0;
}

static int teardown(void **state)
{
	close(pins.signal_fd[PINNED_MAP_long_waits]);
	return 0;
}

static bool has_map(void)
{
	return pins.signal_fd[PINNED_MAP_long_waits] >= 0;
}

static void put(uint32_t tid, uint64_t from_ms, uint64_t to_ms, uint16_t slot)
{
	const struct long_wait w = { .begin_ns = from_ms * MS,
				     .end_ns = to_ms * MS,
				     .tid = tid,
				     .by_tid = 90,
				     .slot = slot,
				     .part = ACCOUNT_PIPE };

	number++;
	assert_int_equal(bpf_map_update_elem(pins.signal_fd[PINNED_MAP_long_waits], &number, &w,
					     BPF_NOEXIST),
			 0);
}

static void add_account(uint32_t tid, const char *comm, uint64_t wall_ms)
{
	struct thread_account *a = &accounts[all.count++];

	*a = (struct thread_account){ .tid = tid, .tgid = 7, .wall_ns = wall_ms * MS };
	snprintf(a->comm, sizeof(a->comm), "%s", comm);
}

static void add_open(uint32_t tid, enum account_part part, uint64_t from_ms)
{
	open_waits[all.open.count++] =
		(struct open_wait){ .tid = tid, .tgid = 7, .begin_ns = from_ms * MS, .part = part };
}

static void take(struct long_waits *w)
{
	assert_int_equal(long_waits_take(long_waits_open(), &source, w), 0);
	assert_int_equal(w->ledger.attempted, w->ledger.emitted + ledger_lost(&w->ledger));
}

/* Those of the session and within, cut to its time, in the order of thread and time. */
static void test_waits(void **state)
{
	struct long_waits w;

	if (!has_map())
		skip();
	put(12, 300, 400, SLOT);
	put(11, 50, 150, SLOT); /* it began before */
	put(11, 200, 300, SLOT);
	put(11, 10, 90, SLOT);	  /* before */
	put(11, 950, 1200, SLOT); /* it ended after the reading of the accounts began */
	put(13, 300, 400, OUTER); /* of the watch around */
	put(14, 300, 400, SLOT + 1);
	add_account(11, "a", 900);
	add_account(90, "b", 900);
	add_account(99, "nobody", 900);
	source.lost = (struct slot_locks){ .long_waits = 3, .long_wait_ns = 5 };
	take(&w);
	assert_int_equal(w.count, 4);
	assert_int_equal(w.items[0].begin_ns, 100 * MS);
	assert_int_equal(w.items[0].end_ns, 150 * MS);
	assert_int_equal(w.items[1].begin_ns, 200 * MS);
	assert_int_equal(w.items[2].end_ns, 1000 * MS);
	assert_int_equal(w.items[3].tid, 12);
	assert_int_equal(w.ledger.emitted, 4);
	assert_int_equal(w.ledger.lost[DROP_LONG_WAITS_FULL], 3);
	assert_int_equal(w.lost_ns, 5);
	/* Of thread 12 there is no account, and 99 is in no wait. */
	assert_int_equal(w.n_threads, 2);
	assert_string_equal(long_waits_thread(&w, 90)->comm, "b");
	assert_null(long_waits_thread(&w, 12));
	assert_null(long_waits_thread(&w, 99));
	long_waits_done(&w);
	/* The session on the watch around has them all but that of another one. */
	source.slot = OUTER;
	take(&w);
	assert_int_equal(w.count, 5);
	long_waits_done(&w);
}

/* Waits that were not over end with the session; of a lock it is known which. */
static void test_open(void **state)
{
	const struct lock_record locks[] = { { .tid = 11, .lock = { .address = 0xc0de } } };
	struct long_waits w;

	if (!has_map())
		skip();
	put(12, 900, 1100, SLOT);
	add_open(11, ACCOUNT_LOCK, 40);
	add_open(12, ACCOUNT_PIPE, 900); /* it ended while the accounts were read */
	add_open(13, ACCOUNT_CHILD, 700);
	add_open(14, ACCOUNT_CHILD, 1000); /* not long yet */
	source.locks = locks;
	source.n_locks = ARRAY_SIZE(locks);
	take(&w);
	assert_int_equal(w.count, 3);
	assert_int_equal(w.items[0].end, LONG_WAIT_OPEN);
	assert_int_equal(w.items[0].address, 0xc0de);
	assert_int_equal(w.items[0].begin_ns, 100 * MS);
	assert_int_equal(w.items[0].end_ns, 1000 * MS);
	assert_int_equal(w.items[1].tid, 12);
	assert_int_equal(w.items[1].end, LONG_WAIT_THREAD);
	assert_int_equal(w.items[2].part, ACCOUNT_CHILD);
	assert_string_equal(long_waits_end(w.items[2].end), "open");
	long_waits_done(&w);
}

/* Of a thread id that was used twice the one that lasted longer counts. */
static void test_used_again(void **state)
{
	struct long_waits w;

	if (!has_map())
		skip();
	put(11, 200, 300, SLOT);
	add_account(11, "short", 20);
	add_account(11, "long", 700);
	add_account(11, "shorter", 10);
	take(&w);
	assert_int_equal(w.n_threads, 1);
	assert_string_equal(w.threads[0].comm, "long");
	long_waits_done(&w);
}

/* Without room in the budget the waits are lost, and counted; what was taken is given back. */
static void test_budget(void **state)
{
	struct stack_budget small = { .max_bytes = 256 }, large = { .max_bytes = 1u << 20 };
	struct long_waits w;

	if (!has_map())
		skip();
	put(11, 200, 300, SLOT);
	put(11, 400, 500, SLOT);
	add_account(11, "a", 700);
	source.budget = &small;
	take(&w);
	assert_int_equal(w.count, 0);
	assert_int_equal(w.ledger.lost[DROP_MAP_FULL], 2);
	assert_int_equal(small.used_bytes, 0);
	long_waits_done(&w);
	source.budget = &large;
	take(&w);
	assert_int_equal(w.count, 2);
	assert_true(large.used_bytes >= 2 * sizeof(struct long_wait));
	long_waits_done(&w);
	assert_int_equal(large.used_bytes, 0);
}

/* What no kernel side would write leads nowhere. */
static void test_insane(void **state)
{
	const struct long_wait bad = { .begin_ns = 200 * MS,
				       .end_ns = 300 * MS,
				       .tid = 11,
				       .slot = SLOT,
				       .part = 0xff,
				       .end = 0xff,
				       .by_comm = "0123456789abcdef" };
	struct long_waits w;

	if (!has_map())
		skip();
	number++;
	assert_int_equal(bpf_map_update_elem(pins.signal_fd[PINNED_MAP_long_waits], &number, &bad,
					     BPF_NOEXIST),
			 0);
	put(11, 500, 400, SLOT);
	put(11, UINT64_MAX / MS, 0, SLOT);
	take(&w);
	assert_int_equal(w.count, 1);
	assert_int_equal(w.items[0].part, ACCOUNT_OTHER);
	assert_int_equal(w.items[0].end, LONG_WAIT_OPEN);
	assert_int_equal(strlen(w.items[0].by_comm), COMM_BYTES - 1);
	assert_string_equal(long_waits_end(77), "open");
	long_waits_done(&w);
}

/* Read in slices it is the same. */
static void test_slices(void **state)
{
	struct long_waits_reading *r = long_waits_open();
	unsigned int steps = 1;
	struct long_waits w;

	if (!has_map())
		skip();
	for (uint32_t i = 0; i < 1000; i++)
		put(11, 200 + i / 2, 201 + i / 2, SLOT);
	while (long_waits_step(r, &pins, SLOT, 0) > 0)
		steps++;
	assert_true(steps > 1);
	assert_int_equal(long_waits_take(r, &source, &w), 0);
	assert_int_equal(w.count, 1000);
	long_waits_done(&w);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(long_waits)
{
	static const struct CMUnitTest tests[] = {
		EACH(test_waits),  EACH(test_open),   EACH(test_used_again),
		EACH(test_budget), EACH(test_insane), EACH(test_slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
