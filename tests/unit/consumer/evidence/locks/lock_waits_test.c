/* SPDX-License-Identifier: BSD-2-Clause */
/* The difference of two readings of the waits for locks, with real maps and a file of records. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/evidence/locks/lock_waits.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/clock.h"

#define SLOT  2
#define OUTER 1
#define MS    NSEC_PER_MSEC

static struct pinned_maps pins;
static struct slot slots[SLOT + 1];
static char path[] = "/tmp/trocar-unit-locks-XXXXXX";
static const struct lock_key a_lock = { .address = 0x1000, .tgid = 7, .slot = SLOT };
static const struct lock_key b_lock = { .address = 0x2000, .tgid = 8, .slot = SLOT };

static int new_map(uint32_t type, size_t key, size_t value)
{
	LIBBPF_OPTS(bpf_map_create_opts, options);

	return bpf_map_create((enum bpf_map_type)type, "unit", (uint32_t)key, (uint32_t)value, 256,
			      &options);
}

static int setup(void **state)
{
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	memset(slots, 0, sizeof(slots));
	slots[SLOT].outer = OUTER + 1;
	pins = (struct pinned_maps){ .slots = slots, .lock_waits_path = path };
	pins.abi.slots = SLOT + 1;
	pins.abi.cpus_possible = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	pins.signal_fd[PINNED_MAP_locks] =
		new_map(BPF_MAP_TYPE_HASH, sizeof(struct lock_key), sizeof(struct lock_sums));
	pins.signal_fd[PINNED_MAP_lock_wakers] = new_map(
		BPF_MAP_TYPE_HASH, sizeof(struct lock_waker_key), sizeof(struct lock_waker));
	pins.signal_fd[PINNED_MAP_lock_losses] =
		new_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct slot_locks));
	return 0;
}

static int teardown(void **state)
{
	close(pins.signal_fd[PINNED_MAP_locks]);
	close(pins.signal_fd[PINNED_MAP_lock_wakers]);
	close(pins.signal_fd[PINNED_MAP_lock_losses]);
	unlink(path);
	return 0;
}

static bool has_maps(void)
{
	return pins.signal_fd[PINNED_MAP_locks] >= 0;
}

/* Adds `n` waits by thread `tid`, in that step of the histogram. */
static void put_long_waits(const struct lock_key *key, unsigned int n, uint32_t tid, uint64_t ns,
			   unsigned int bucket)
{
	struct lock_sums sums = { .start_ns = 5, .comm = "api" };
	int fd = pins.signal_fd[PINNED_MAP_locks];

	bpf_map_lookup_elem(fd, key, &sums);
	sums.waits += n;
	sums.total_ns += n * ns;
	sums.buckets[bucket] += n;
	sums.longest_ns = sums.longest_ns > ns ? sums.longest_ns : ns;
	sums.longest_tid = tid;
	sums.threads[tid / 64 % LOCK_THREAD_WORDS] |= 1ull << tid % 64;
	assert_int_equal(bpf_map_update_elem(fd, key, &sums, BPF_ANY), 0);
}

/* The same of 3 ms each. */
static void put_waits(const struct lock_key *key, unsigned int n, uint32_t tid)
{
	put_long_waits(key, n, tid, 3 * MS, 23); /* up to 1.5 * 2^21 ns */
}

static void put_waker(const struct lock_key *lock, uint32_t tid, uint64_t waits, uint64_t held_ns)
{
	const struct lock_waker_key key = { .lock = *lock, .tid = tid };
	const struct lock_waker waker = {
		.waits = waits, .held_ns = held_ns, .tgid = lock->tgid, .comm = "writer"
	};

	assert_int_equal(
		bpf_map_update_elem(pins.signal_fd[PINNED_MAP_lock_wakers], &key, &waker, BPF_ANY),
		0);
}

/* The waits that are not over: the file holds these and no others. */
static void put_open(const struct lock_record *records, size_t n)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, records, n * sizeof(*records)), n * sizeof(*records));
	close(fd);
}

static void lose(uint64_t waits, uint64_t wakers)
{
	struct slot_locks *each = calloc(pins.abi.cpus_possible, sizeof(*each));
	uint32_t slot = SLOT;

	each[0].waits = waits;
	each[0].wakers = wakers;
	assert_int_equal(
		bpf_map_update_elem(pins.signal_fd[PINNED_MAP_lock_losses], &slot, each, BPF_ANY),
		0);
	free(each);
}

static const struct lock_waited *find(const struct lock_waits *w, const struct lock_key *key)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->items[i].lock.address == key->address && w->items[i].lock.tgid == key->tgid)
			return &w->items[i];
	fail();
	return NULL;
}

/* What was before is taken off, of each lock and of each waker. */
static void test_difference(void **state)
{
	struct lock_baseline before = {};
	const struct lock_waited *lock;
	struct lock_waits w;

	if (!has_maps())
		skip();
	put_waits(&a_lock, 4, 70);
	put_waker(&a_lock, 99, 4, 12 * MS);
	lose(5, 1);
	assert_int_equal(lock_waits_begin(&pins, SLOT, &before), 0);
	put_waits(&a_lock, 6, 71);
	put_waits(&b_lock, 1, 80);
	put_waker(&a_lock, 99, 9, 27 * MS);
	put_waker(&a_lock, 98, 1, 3 * MS);
	lose(7, 4);
	assert_int_equal(lock_waits_end(&pins, SLOT, 0, &before, &w), 0);
	assert_int_equal(w.count, 2);
	lock = find(&w, &a_lock);
	assert_ptr_equal(lock, &w.items[0]);
	assert_int_equal(lock->waits, 6);
	assert_int_equal(lock->total_ns, 18 * MS);
	assert_int_equal(lock->threads, 2);
	assert_int_equal(lock->n_wakers, 2);
	assert_int_equal(lock->woken[0].tid, 99);
	assert_int_equal(lock->woken[0].waits, 5);
	assert_int_equal(lock->woken[0].held_ns, 15 * MS);
	assert_string_equal(lock->woken[1].comm, "writer");
	/* The longest was before: of those since then only the step is known. */
	assert_int_equal(lock->longest_tid, 0);
	assert_int_equal(lock->longest_ns, 3 * MS);
	assert_int_equal(find(&w, &b_lock)->longest_tid, 80);
	assert_int_equal(w.ledger.attempted, 9);
	assert_int_equal(w.ledger.emitted, 7);
	assert_int_equal(w.ledger.lost[DROP_LOCKS_FULL], 2);
	assert_int_equal(w.wakers_lost, 3);
	assert_int_equal(w.all.waits, 7);
	lock_waits_done(&w);
	lock_maps_forget(&before);
}

/*
 * One wait began before the session and is open still, one began before and ended in it, one is
 * open since the session: each counts from the begin on.
 */
static void test_open(void **state)
{
	uint64_t now_ns = clock_mono_ns();
	struct lock_record open[2] = {
		{ .lock = a_lock, .tid = 70, .since_ns = now_ns - 900 * MS, .now_ns = now_ns },
		{ .lock = b_lock, .tid = 80, .since_ns = now_ns - 2 * MS, .now_ns = now_ns },
	};
	struct lock_baseline before = {};
	struct lock_waits w;

	if (!has_maps())
		skip();
	put_open(open, 2);
	assert_int_equal(lock_waits_begin(&pins, SLOT, &before), 0);
	before.begin_ns = now_ns;
	put_waits(&b_lock, 1, 80);
	open[0].now_ns = now_ns + 50 * MS;
	open[1] = (struct lock_record){ .lock = a_lock, .tid = 71, .since_ns = now_ns + 20 * MS };
	open[1].now_ns = now_ns + 50 * MS;
	memcpy(open[1].thread_comm, "late", 5);
	put_open(open, 2);
	assert_int_equal(lock_waits_end(&pins, SLOT, 0, &before, &w), 0);
	assert_int_equal(find(&w, &a_lock)->waits, 2);
	assert_int_equal(find(&w, &a_lock)->open, 2);
	assert_int_equal(find(&w, &a_lock)->total_ns, 80 * MS);
	assert_int_equal(find(&w, &a_lock)->open_ns, 80 * MS);
	assert_int_equal(find(&w, &a_lock)->longest_ns, 50 * MS);
	assert_int_equal(find(&w, &a_lock)->longest_tid, 70);
	assert_int_equal(find(&w, &a_lock)->threads, 2);
	assert_int_equal(find(&w, &b_lock)->open, 0);
	assert_int_equal(find(&w, &b_lock)->total_ns, MS);
	assert_int_equal(w.ledger.emitted, 3);
	lock_waits_done(&w);
	lock_maps_forget(&before);
}

/* Another process, another watch: neither is of this session. */
static void test_filters(void **state)
{
	const struct lock_key elsewhere = { .address = 0x3000, .tgid = 7, .slot = OUTER };
	const struct lock_baseline before = {};
	struct lock_waits w;

	if (!has_maps())
		skip();
	put_waits(&a_lock, 1, 70);
	put_waits(&b_lock, 1, 80);
	put_waits(&elsewhere, 1, 71);
	put_waker(&b_lock, 99, 1, MS);
	assert_int_equal(lock_waits_end(&pins, SLOT, 7, &before, &w), 0);
	assert_int_equal(w.count, 1);
	assert_int_equal(w.items[0].lock.address, a_lock.address);
	lock_waits_done(&w);
	assert_int_equal(lock_waits_end(&pins, OUTER, 0, &before, &w), 0);
	assert_int_equal(w.count, 3);
	lock_waits_done(&w);
}

/* More locks than are named: the rest is one; and a lock has the four that held it longest. */
static void test_many(void **state)
{
	const struct lock_baseline before = {};
	struct lock_key key = a_lock;
	struct lock_waits w;

	if (!has_maps())
		skip();
	for (unsigned int i = 0; i < LOCK_WAITS_NAMED + 5; i++) {
		key.address = 0x1000 + i;
		put_waits(&key, i + 1, 70 + i);
	}
	for (uint32_t i = 0; i < 9; i++)
		put_waker(&key, 100 + i, 1, (i * 5 % 9 + 1) * MS);
	assert_int_equal(lock_waits_end(&pins, SLOT, 0, &before, &w), 0);
	assert_int_equal(w.count, LOCK_WAITS_NAMED + 1);
	assert_int_equal(w.items[LOCK_WAITS_NAMED].lock.tgid, 0);
	assert_int_equal(w.items[LOCK_WAITS_NAMED].locks, 5);
	assert_int_equal(w.items[LOCK_WAITS_NAMED].waits, 1 + 2 + 3 + 4 + 5);
	assert_int_equal(w.all.locks, LOCK_WAITS_NAMED + 5);
	assert_int_equal(w.items[0].wakers, 9);
	assert_int_equal(w.items[0].n_wakers, LOCK_WAITS_WAKERS);
	for (uint32_t i = 0; i < LOCK_WAITS_WAKERS; i++)
		assert_int_equal(w.items[0].woken[i].held_ns, (9 - i) * MS);
	lock_waits_done(&w);
}

/* Long waits behind one thread, and many short ones: the rule of lock_waits.c. */
static void test_patterns(void **state)
{
	const struct lock_baseline before = {};
	struct lock_waits w;

	if (!has_maps())
		skip();
	put_waits(&a_lock, 4, 70);
	put_waits(&a_lock, 4, 71);
	put_waker(&a_lock, 99, 8, 20 * MS);
	put_waits(&b_lock, 40, 80);
	assert_int_equal(lock_waits_end(&pins, SLOT, 0, &before, &w), 0);
	assert_int_equal(find(&w, &a_lock)->pattern, LOCK_PATTERN_LONG_HOLD);
	assert_int_equal(find(&w, &b_lock)->pattern, LOCK_PATTERN_NONE); /* one thread */
	lock_waits_done(&w);
	put_waker(&a_lock, 99, 8, 10 * MS);
	put_waits(&b_lock, 1, 81);
	assert_int_equal(lock_waits_end(&pins, SLOT, 0, &before, &w), 0);
	assert_int_equal(find(&w, &a_lock)->pattern, LOCK_PATTERN_NONE); /* behind many */
	assert_int_equal(find(&w, &b_lock)->pattern, LOCK_PATTERN_CONVOY);
	lock_waits_done(&w);
}

/* One wait of forty that lasted three holds does not hide them; where most are short, it is none.
 */
static void test_one_longer_wait(void **state)
{
	const struct lock_baseline before = {};
	struct lock_waits w;

	if (!has_maps())
		skip();
	for (uint32_t tid = 70; tid < 73; tid++)
		put_long_waits(&a_lock, 13, tid, 20 * MS, 29);
	put_long_waits(&a_lock, 1, 70, 60 * MS, 32);
	put_waker(&a_lock, 99, 40, 800 * MS);
	put_long_waits(&b_lock, 15, 80, 1 * MS, 20);
	put_long_waits(&b_lock, 5, 81, 100 * MS, 33);
	put_waker(&b_lock, 99, 20, 450 * MS);
	assert_int_equal(lock_waits_end(&pins, SLOT, 0, &before, &w), 0);
	assert_int_equal(find(&w, &a_lock)->pattern, LOCK_PATTERN_LONG_HOLD);
	assert_int_equal(find(&w, &b_lock)->pattern, LOCK_PATTERN_NONE);
	lock_waits_done(&w);
}

/* Of the waits of four threads a quarter follow upon a wake-up in vain, since the begin. */
static void test_herd(void **state)
{
	struct lock_baseline before = {};
	struct lock_sums sums;
	struct lock_waits w;
	int fd = pins.signal_fd[PINNED_MAP_locks];

	if (!has_maps())
		skip();
	put_waits(&a_lock, 1, 70);
	assert_int_equal(bpf_map_lookup_elem(fd, &a_lock, &sums), 0);
	sums.again = UINT32_MAX; /* it begins anew at 0 */
	assert_int_equal(bpf_map_update_elem(fd, &a_lock, &sums, BPF_ANY), 0);
	assert_int_equal(lock_waits_begin(&pins, SLOT, &before), 0);
	for (uint32_t i = 0; i < 4; i++)
		put_waits(&a_lock, 16, 70 + i);
	for (uint32_t again = 14; again <= 15; again++) {
		assert_int_equal(bpf_map_lookup_elem(fd, &a_lock, &sums), 0);
		sums.again = again;
		assert_int_equal(bpf_map_update_elem(fd, &a_lock, &sums, BPF_ANY), 0);
		assert_int_equal(lock_waits_end(&pins, SLOT, 0, &before, &w), 0);
		assert_int_equal(find(&w, &a_lock)->woken_in_vain, again + 1);
		assert_int_equal(find(&w, &a_lock)->pattern,
				 again == 15 ? LOCK_PATTERN_HERD : LOCK_PATTERN_CONVOY);
		lock_waits_done(&w);
	}
	lock_maps_forget(&before);
}

static void test_sweep(void **state)
{
	struct lock_sums sums;
	int fd = pins.signal_fd[PINNED_MAP_locks];

	if (!has_maps())
		skip();
	put_waits(&a_lock, 1, 70);
	slots[SLOT].state = SLOT_CAPTURE;
	lock_maps_sweep(&pins, false);
	assert_int_equal(bpf_map_lookup_elem(fd, &a_lock, &sums), 0);
	slots[SLOT].state = SLOT_RECORDER;
	lock_maps_sweep(&pins, false);
	assert_true(bpf_map_lookup_elem(fd, &a_lock, &sums) < 0);
	slots[SLOT].state = SLOT_CAPTURE;
	put_waits(&a_lock, 1, 70);
	lock_maps_sweep(&pins, true);
	assert_true(bpf_map_lookup_elem(fd, &a_lock, &sums) < 0);
}

static void test_words(void **state)
{
	assert_string_equal(lock_waits_kind(LOCK_PI), "pi_futex");
	assert_string_equal(lock_waits_kind(99), "other"); /* whatever is in the map */
	assert_string_equal(lock_waits_waker(LOCK_WAKER_SIGNAL), "signal");
	assert_string_equal(lock_waits_waker(99), "interrupt");
	assert_null(lock_waits_pattern(LOCK_PATTERN_NONE));
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* Peers that wake each other hand a lock on; a producer gives work. */
static void test_handed_on(void **state)
{
	struct lock_waited item = { .lock = a_lock,
				    .threads = 3,
				    .bits = { 1ull << 10 | 1ull << 11 | 1ull << 12 },
				    .n_wakers = 2,
				    .woken = { { .tid = 11, .tgid = 7, .waits = 5 },
					       { .tid = 12 + 512, .tgid = 7, .waits = 4 } } };
	const struct lock_waits waits = { .items = &item, .count = 1 };

	assert_true(lock_waits_is_handed_on(&waits, 7, 0x1000));
	assert_false(lock_waits_is_handed_on(&waits, 8, 0x1000));
	assert_false(lock_waits_is_handed_on(&waits, 7, 0x2000));
	assert_false(lock_waits_is_handed_on(&waits, 7, 0));
	assert_false(lock_waits_is_handed_on(NULL, 7, 0x1000));
	item.woken[0].tid = 40; /* it never waits there */
	assert_false(lock_waits_is_handed_on(&waits, 7, 0x1000));
	item.woken[0].tid = 11;
	item.woken[0].kind = LOCK_WAKER_THREAD + 1;
	assert_false(lock_waits_is_handed_on(&waits, 7, 0x1000));
	item.woken[0].kind = LOCK_WAKER_THREAD;
	item.threads = 300;
	assert_false(lock_waits_is_handed_on(&waits, 7, 0x1000));
	item.threads = 1;
	assert_false(lock_waits_is_handed_on(&waits, 7, 0x1000));
}

UNIT_TESTS(lock_waits)
{
	const struct CMUnitTest tests[] = {
		EACH(test_difference), EACH(test_handed_on),
		EACH(test_open),       EACH(test_filters),
		EACH(test_many),       EACH(test_patterns),
		EACH(test_herd),       EACH(test_sweep),
		EACH(test_words),      EACH(test_one_longer_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
