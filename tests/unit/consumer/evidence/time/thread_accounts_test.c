/* SPDX-License-Identifier: BSD-2-Clause */
/* Accounts with a real map, and a file in the place of the iterator. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/evidence/time/account_table.h"
#include "consumer/evidence/time/thread_accounts.h"
#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/clock.h"

#define SLOT  2
#define INNER 3 /* within the watch of SLOT */
#define SLOTS 8

static struct pinned_maps pins;
static struct slot slots[SLOTS];
static char path[] = "/tmp/trocar-unit-accounts-XXXXXX";
static struct account_record records[16];
static size_t n_records;
static struct thread_queue queue; /* of later elements */

static int setup(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	memset(slots, 0, sizeof(slots));
	slots[INNER].outer = SLOT + 1;
	slots[SLOT].state = SLOT_CAPTURE;
	pins = (struct pinned_maps){ .slots = slots, .account_threads_path = path };
	pins.abi.slots = SLOTS;
	pins.abi.cpus_possible = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	pins.signal_fd[PINNED_MAP_accounts] =
		bpf_map_create(BPF_MAP_TYPE_HASH, "unit", sizeof(struct account_key),
			       sizeof(struct thread_times), 1024, &options);
	pins.signal_fd[PINNED_MAP_account_losses] = bpf_map_create(
		BPF_MAP_TYPE_PERCPU_ARRAY, "unit", 4, sizeof(struct slot_accounts), SLOTS, NULL);
	n_records = 0;
	queue = (struct thread_queue){};
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	close(pins.signal_fd[PINNED_MAP_accounts]);
	close(pins.signal_fd[PINNED_MAP_account_losses]);
	return 0;
}

static bool has_bpf(void)
{
	return pins.signal_fd[PINNED_MAP_accounts] >= 0;
}

/* An account that has slept from `first_ns` to `since_ns`. */
static struct time_account slept(uint32_t slot, uint64_t first_ns, uint64_t since_ns)
{
	struct time_account a = { .first_ns = first_ns, .since_ns = since_ns, .slot = slot };

	a.tgid = 100;
	a.part_ns[ACCOUNT_SLEEP] = since_ns - first_ns;
	snprintf(a.comm, sizeof(a.comm), "one");
	return a;
}

static void put_element(uint32_t tid, uint32_t ended, const struct time_account *a)
{
	const struct thread_times times = { .account = *a, .queue = queue };
	struct account_key key = { tid, ended };

	assert_int_equal(
		bpf_map_update_elem(pins.signal_fd[PINNED_MAP_accounts], &key, &times, BPF_ANY), 0);
}

/* A living thread: it is in the map, and the iterator lists it. */
static void put_living(uint32_t tid, const struct time_account *a)
{
	records[n_records++] =
		(struct account_record){ .head = { .tid = tid, .account = *a }, .queue = queue };
	put_element(tid, 0, a);
}

static void write_records(void)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(records, sizeof(*records), n_records, file), n_records);
	fclose(file);
	n_records = 0;
}

static const struct thread_account *find(const struct thread_accounts *all, uint32_t tid)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].tid == tid)
			return &all->items[i];
	return NULL;
}

static void assert_closes(const struct thread_account *t)
{
	uint64_t sum_ns = t->unaccounted_ns;

	for (int i = 0; i < ACCOUNT_PARTS_; i++)
		sum_ns += t->part_ns[i];
	assert_int_equal(sum_ns, t->wall_ns);
}

/* The time before the session is subtracted, each fate is reported, and each account closes. */
static void test_difference(void **state)
{
	uint64_t now_ns = clock_mono_ns(), then_ns = now_ns + 10 * NSEC_PER_SEC;
	struct thread_baseline before = {};
	struct thread_accounts all = {};
	struct time_account a;

	if (!has_bpf()) {
		skip();
		return;
	}
	a = slept(SLOT, now_ns - NSEC_PER_SEC, now_ns);
	put_living(1, &a);
	a = slept(INNER, now_ns, now_ns);
	put_living(2, &a);
	a = slept(SLOT, now_ns - NSEC_PER_SEC, now_ns - 1);
	a.flags = ACCOUNT_ENDED;
	put_element(9, 0x80000001, &a); /* ended before the session */
	write_records();
	assert_int_equal(thread_accounts_begin(&pins, SLOT, &before), 0);
	assert_int_equal(before.count, 2);

	a = slept(SLOT, now_ns - NSEC_PER_SEC, then_ns);
	put_living(1, &a);
	a = slept(INNER, now_ns, now_ns + NSEC_PER_SEC);
	a.flags = ACCOUNT_ENDED;
	put_element(2, 0, &a);
	a = slept(SLOT, then_ns - 5, then_ns);
	a.born_ns = a.first_ns;
	put_living(3, &a);
	a = slept(SLOT, then_ns - 7, then_ns);
	a.born_ns = 1;
	put_living(4, &a);
	a = slept(SLOT, now_ns + 100, then_ns - 9);
	put_element(5, 0, &a); /* the iterator does not list it */
	a = slept(1, now_ns, then_ns);
	put_living(6, &a); /* of another watch */
	a = slept(SLOT, then_ns - 3, then_ns);
	a.born_ns = then_ns - 6; /* in another cgroup */
	put_living(7, &a);
	write_records();
	assert_int_equal(thread_accounts_end(&pins, SLOT, 0, &before, &all), 0);
	assert_true(all.count == 6 && all.lost == 0);
	for (size_t i = 0; i < all.count; i++)
		assert_closes(&all.items[i]);
	assert_int_equal(find(&all, 1)->fate, 0);
	assert_int_equal(find(&all, 1)->part_ns[ACCOUNT_SLEEP], then_ns - now_ns);
	/* A thread is in the session from when the first reading came to it. */
	assert_int_equal(find(&all, 1)->unaccounted_ns, 0);
	assert_true(all.end_ns >= before.begin_ns + before.read_ns && before.read_ns &&
		    all.read_ns);
	assert_int_equal(find(&all, 2)->fate, THREAD_ENDED);
	assert_int_equal(find(&all, 2)->part_ns[ACCOUNT_SLEEP], NSEC_PER_SEC);
	assert_int_equal(find(&all, 3)->fate, THREAD_BORN);
	assert_int_equal(find(&all, 4)->fate, THREAD_ARRIVED);
	assert_int_equal(find(&all, 5)->fate, THREAD_ARRIVED | THREAD_LEFT);
	assert_int_equal(find(&all, 7)->fate, THREAD_ARRIVED);
	assert_int_equal(find(&all, 7)->unaccounted_ns, 0);
	thread_accounts_forget(&before);
	thread_accounts_done(&all);
}

/* A session of one process has its threads alone; those without room are counted. */
static void test_one_process(void **state)
{
	struct thread_baseline before = {};
	struct thread_accounts all = {};
	struct slot_accounts *each = calloc(pins.abi.cpus_possible, sizeof(*each));
	uint64_t now_ns = clock_mono_ns();
	struct time_account a = slept(SLOT, now_ns, now_ns);
	uint32_t slot = SLOT;

	assert_non_null(each);
	if (!has_bpf()) {
		free(each);
		skip();
		return;
	}
	write_records();
	assert_int_equal(thread_accounts_begin(&pins, SLOT, &before), 0);
	a.since_ns += NSEC_PER_SEC;
	a.part_ns[ACCOUNT_SLEEP] = NSEC_PER_SEC;
	put_living(1, &a);
	a.tgid = 200;
	put_living(2, &a);
	records[n_records++] = (struct account_record){
		.head = { .tid = 3,
			  .account = { .slot = SLOT, .tgid = 100, .flags = ACCOUNT_LOST } }
	};
	write_records();
	each[0].ended = 4;
	each[0].unqueued = 40;
	assert_int_equal(bpf_map_update_elem(pins.signal_fd[PINNED_MAP_account_losses], &slot, each,
					     BPF_ANY),
			 0);
	free(each);
	assert_int_equal(thread_accounts_end(&pins, SLOT, 100, &before, &all), 0);
	assert_int_equal(all.count, 1);
	assert_int_equal(all.items[0].tid, 1);
	assert_int_equal(all.lost, 5);
	assert_int_equal(all.losses.unqueued, 40);
	thread_accounts_forget(&before);
	thread_accounts_done(&all);
}

/* The waits for a CPU of before are subtracted, and open waits are listed with their call. */
static void test_queue(void **state)
{
	uint64_t now_ns = clock_mono_ns();
	struct time_account a = slept(SLOT, now_ns, now_ns + NSEC_PER_SEC);
	struct thread_baseline before = {};
	struct thread_accounts all = {};

	if (!has_bpf()) {
		skip();
		return;
	}
	queue.waits[3] = 7;
	queue.behind_ns[QUEUE_OTHERS] = 70;
	queue.longest_ns = 40;
	queue.longest_end_ns = 5;
	a.switches = (struct slot_switches){ .voluntary = 5, .involuntary = 2 };
	put_living(1, &a);
	put_living(2, &a);
	write_records();
	assert_int_equal(thread_accounts_begin(&pins, SLOT, &before), 0);
	assert_int_equal(before.open.count, 0);
	queue.waits[3] = 9;
	queue.waits[4] = 1;
	queue.behind_ns[QUEUE_OTHERS] = 100;
	a.switches = (struct slot_switches){ .voluntary = 8, .involuntary = 2 };
	put_living(1, &a);
	records[0].head.open_wait_ns = 12;
	records[0].head.account.call = 202;
	queue.longest_ns = 60;
	queue.longest_end_ns = 9;
	put_living(2, &a);
	a.born_ns = a.first_ns = now_ns + 9;
	put_living(3, &a);
	write_records();
	assert_int_equal(thread_accounts_end(&pins, SLOT, 0, &before, &all), 0);
	assert_int_equal(find(&all, 1)->queue.waits[3], 2);
	assert_int_equal(find(&all, 1)->queue.waits[4], 1);
	assert_int_equal(find(&all, 1)->queue.behind_ns[QUEUE_OTHERS], 30);
	assert_int_equal(find(&all, 1)->queue.longest_ns, 0); /* it was before */
	assert_int_equal(find(&all, 2)->queue.longest_ns, 60);
	assert_int_equal(find(&all, 3)->queue.waits[3], 9);
	assert_int_equal(find(&all, 1)->switches.voluntary, 3);
	assert_int_equal(find(&all, 1)->switches.involuntary, 0);
	assert_int_equal(find(&all, 3)->switches.voluntary, 8);
	assert_int_equal(all.open.count, 1);
	assert_int_equal(all.open.items[0].wait_ns, 12);
	assert_int_equal(all.open.items[0].call, 202);
	thread_accounts_forget(&before);
	thread_accounts_done(&all);
}

static size_t count_elements(void)
{
	struct account_key key, *previous = NULL;
	size_t n = 0;

	while (bpf_map_get_next_key(pins.signal_fd[PINNED_MAP_accounts], previous, &key) == 0) {
		previous = &key;
		n++;
	}
	return n;
}

/* In slices of one part of the table each. */
static void sweep(void)
{
	struct account_sweep s = {};
	size_t elements = count_elements();
	unsigned int steps = 0;

	account_table_sweep_begin(&s);
	for (; s.elements; steps++)
		account_table_sweep_step(&s, &pins, 0);
	assert_true(steps >= elements / MAP_BATCH_PART);
}

/* What another session still takes stays. */
static void test_sweep(void **state)
{
	struct time_account a = slept(INNER, 1, 2);

	if (!has_bpf()) {
		skip();
		return;
	}
	for (uint32_t i = 1; i <= 300; i++)
		put_element(i, 0, &a);
	a.slot = 5;
	for (uint32_t i = 301; i <= 900; i++)
		put_element(i, i % 2, &a);
	a.slot = 0xfffffff0;
	put_element(901, 0, &a);
	sweep();
	assert_int_equal(count_elements(), 300);
	slots[SLOT].state = SLOT_RECORDER;
	sweep();
	assert_int_equal(count_elements(), 0);
	slots[SLOT].state = SLOT_CAPTURE;
	put_element(1, 0, &a);
	a.slot = SLOT;
	put_element(2, 0, &a);
	account_table_empty(&pins);
	assert_int_equal(count_elements(), 0);
}

/* Of the array only readable elements are removed, and those without a taker. */
static void test_sweep_near(void **state)
{
	static struct near_account near[ACCOUNTS_NEAR];

	if (!has_bpf()) {
		skip();
		return;
	}
	pins.accounts_near = near;
	for (uint32_t i = 3; i <= 5; i++) {
		near[i].owner = (i + ACCOUNTS_NEAR) | ACCOUNT_NEAR_READY;
		near[i].times.account = slept(INNER, 1, 2);
	}
	near[4].times.account.slot = near[5].times.account.slot = 5;
	near[5].owner = 5;
	sweep();
	assert_int_equal(near[3].owner, (3 + ACCOUNTS_NEAR) | ACCOUNT_NEAR_READY);
	assert_int_equal(near[4].owner, 0);
	assert_int_equal(near[5].owner, 5);
	account_table_empty(&pins);
	assert_int_equal(near[3].owner, 0);
	assert_int_equal(near[5].owner, 5);
	pins.accounts_near = NULL;
}

static void test_unreadable(void **state)
{
	struct thread_baseline before = {};

	if (!has_bpf()) {
		skip();
		return;
	}
	pins.account_threads_path = (char *)"/nowhere/account_threads";
	assert_true(thread_accounts_begin(&pins, SLOT, &before) < 0);
	assert_null(before.items);
}

#define MANY 500

/* Empty records, after which the iterator ends a read, and the records of MANY threads. */
static void write_many(uint64_t first_ns)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	for (uint32_t i = 0; i < MANY + ACCOUNTS_AT_ONCE; i++) {
		struct account_record record = {};

		if (i >= ACCOUNTS_AT_ONCE) {
			record.head.tid = i;
			record.head.account = slept(SLOT, first_ns, first_ns + 1000);
		}
		assert_int_equal(fwrite(&record, sizeof(record), 1, file), 1);
	}
	fclose(file);
}

/*
 * A reading in slices is one of several steps, each of a few records, and has the same as one of a
 * single turn: also where threads end meanwhile, or begin.
 */
static void test_slices(void **state)
{
	struct thread_baseline before = {};
	struct thread_accounts all = {};
	struct thread_reading *t;
	struct time_account account;
	unsigned int steps = 0;
	int more;

	if (!has_bpf())
		skip();
	assert_int_equal(thread_accounts_begin(&pins, SLOT, &before), 0);
	write_many(before.begin_ns + 1000);
	assert_int_equal(thread_accounts_open(&pins, SLOT, 0, &before, &t), 0);
	for (; (more = thread_accounts_step(t, 0)) > 0; steps++) {
		if (steps != MANY / ACCOUNTS_AT_ONCE + 5)
			continue;
		/* Living when it was read, ended since; its tid is used again. */
		account = slept(SLOT, before.begin_ns + 1000, before.begin_ns + 9000);
		account.flags = ACCOUNT_ENDED;
		put_element(ACCOUNTS_AT_ONCE + 3, 77, &account);
		account = slept(SLOT, clock_mono_ns(), clock_mono_ns() + 5);
		put_element(ACCOUNTS_AT_ONCE + 3, 0, &account);
	}
	assert_int_equal(more, 0);
	assert_in_range(steps, MANY / ACCOUNTS_AT_ONCE, MANY);
	assert_int_equal(thread_accounts_take(t, &all), 0);
	assert_int_equal(all.count, MANY);
	assert_int_equal(find(&all, ACCOUNTS_AT_ONCE + 3)->part_ns[ACCOUNT_SLEEP], 1000);
	thread_accounts_done(&all);
	/* One that is not taken leaves nothing. */
	assert_int_equal(thread_accounts_open(&pins, SLOT, 0, &before, &t), 0);
	assert_int_equal(thread_accounts_step(t, 0), 1);
	thread_accounts_close(t);
	thread_accounts_forget(&before);
}

UNIT_TESTS(thread_accounts)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_difference, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sweep_near, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
