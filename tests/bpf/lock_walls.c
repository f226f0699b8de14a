/* SPDX-License-Identifier: BSD-2-Clause */
/* lock_walls.c: the unreported parts of waits for locks, and the harm of false words. */
#include "lock_fixture.h"

HARNESS_LOADS("account_*", "lock_*");

/* Outside of a session, and when the consumer gives no sign of life, nothing is kept. */
static void nothing_without_a_session(void **state)
{
	struct fixture f = begin_locks(NULL);
	struct found found[LOCKS];
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		shared->word = shared->ended = 0;
		f.h->slots[SLOT].state = i ? SLOT_CAPTURE : SLOT_RECORDER;
		f.h->control->heartbeat_ns = i ? harness_now_ns() - 70000 * MSEC : harness_now_ns();
		pid = harness_start(hold_word, NULL, f.dir);
		await_end();
		assert_int_equal(find_locks(&f, pid, found), 0);
		harness_kill(pid);
	}
	end_locks(&f);
}

static void wait_everywhere(void *unused)
{
	const struct timespec time = { .tv_nsec = 2 * MSEC };
	uint32_t *words = calloc(ROUNDS * WAITERS, sizeof(*words));

	come_in();
	for (int i = 0; i < ROUNDS * WAITERS; i++)
		futex(&words[i], FUTEX_WAIT, 0, &time);
	say_end();
}

/* Returns the losses of the slot so far, over all CPUs. */
static struct slot_locks read_lost(const struct fixture *f, uint32_t slot)
{
	struct slot_locks each[HARNESS_CPUS], all = {};

	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(f->h->skel->maps.lock_losses), &slot, each), 0);
	for (int i = 0; i < libbpf_num_possible_cpus(); i++) {
		all.waits += each[i].waits;
		all.no_memory += each[i].no_memory;
		all.long_waits += each[i].long_waits;
		all.long_no_memory += each[i].long_no_memory;
	}
	return all;
}

/* What finds no room is counted. */
static void full_table_is_counted(void **state)
{
	struct fixture f = begin_locks(&(struct harness_options){ .locks = 4 });
	pid_t pid = harness_start(wait_everywhere, NULL, f.dir);
	struct slot_locks all;
	struct found found[LOCKS];
	uint64_t waits = 0;
	size_t n;

	await_end();
	all = read_lost(&f, SLOT);
	n = find_locks(&f, pid, found);
	for (size_t i = 0; i < n; i++)
		waits += found[i].sums.waits;
	assert_true(all.waits > 0);
	assert_int_equal(all.no_memory, 0);
	assert_int_equal(waits + all.waits, ROUNDS * WAITERS);
	harness_kill(pid);
	end_locks(&f);
}

#define FLOODS 8
#define ALL    (ROUNDS * WAITERS)

/* One owner fills its share of the tables, and its losses are its own: the other loses nothing. */
static void owners_share_the_tables(void **state)
{
	struct fixture f = begin_locks(&(struct harness_options){
		.locks = FLOODS * ALL, .long_waits = FLOODS * ALL, .shared = true });
	char dir[4096];
	uint64_t id = harness_group(f.h, "victim", dir);
	struct slot_locks lost;
	pid_t pid;

	harness_watch(f.h, id, SLOT + 1, SLOT_CAPTURE, 0);
	f.h->slots[SLOT + 1].payer = SLOT + 1;
	for (int i = 0; i < FLOODS; i++) {
		shared->ended = 0;
		pid = harness_start(wait_everywhere, NULL, f.dir);
		await_end();
		harness_kill(pid);
	}
	shared->ended = 0;
	pid = harness_start(wait_everywhere, NULL, dir);
	await_end();
	harness_kill(pid);
	lost = read_lost(&f, SLOT);
	assert_in_range(lost.waits, ALL, FLOODS * ALL);
	assert_in_range(lost.long_waits, ALL, FLOODS * ALL);
	assert_int_equal(lost.no_memory + lost.long_no_memory, 0);
	lost = read_lost(&f, SLOT + 1);
	assert_int_equal(lost.waits + lost.long_waits, 0);
	assert_int_equal(f.h->slots[0].used[TABLE_LOCKS], FLOODS * ALL * 3 / 4);
	assert_in_range(f.h->slots[SLOT + 1].used[TABLE_LOCKS], ALL / 2,
			ALL + 1); /* one may not wait */
	end_locks(&f);
}

#define CROWD 200

static void *wait_alone(void *word)
{
	come_in();
	futex(word, FUTEX_WAIT, 0, NULL);
	return NULL;
}

static void crowd_together(void *unused)
{
	static uint32_t alone[CROWD];
	pthread_t threads[CROWD];

	for (int i = 0; i < CROWD; i++)
		pthread_create(&threads[i], NULL, wait_alone, &alone[i]);
	harness_sleep_ms(START_MS);
	shared->ended = 1;
	for (;;)
		pause();
}

/*
 * A kill wakes all threads of a process with interrupts off, so the kernel's allocator cannot
 * refill its cache meanwhile: the table is nearly empty, and is not reported as full.
 */
static void short_memory_is_not_full(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(crowd_together, NULL, f.dir);
	struct slot_locks all;

	await_end();
	harness_kill(pid);
	all = read_lost(&f, SLOT);
	assert_in_range(all.waits, 1, CROWD);
	assert_int_equal(all.no_memory, all.waits);
	assert_int_equal(all.long_no_memory, all.long_waits);
	end_locks(&f);
}

static int words[2];

static void read_word(void *unused)
{
	char byte;

	come_in();
	if (read(words[0], &byte, 1) == 1)
		say_end();
}

/* Writes an account, as a consumer may, with a wait of the thread for a lock. */
static void say_lock(const struct fixture *f, pid_t tid)
{
	const struct thread_times t = { .account = { .slot = SLOT,
						     .kind = ACCOUNT_LOCK,
						     .since_ns = harness_now_ns() - 5 * MSEC } };

	put_times(f, tid, &t, true);
}

/*
 * A false account makes a false wait, but no argument of a call that is none for a lock is
 * reported.
 */
static void other_calls_keep_their_arguments(void **state)
{
	struct fixture f = begin_locks(NULL);
	struct lock_record record;
	struct found found[LOCKS];
	pid_t pid;

	assert_int_equal(pipe(words), 0);
	pid = harness_start(read_word, NULL, f.dir);
	harness_sleep_ms(START_MS);
	say_lock(&f, pid);
	assert_int_equal(read_open(&f, pid, &record), 1);
	assert_int_equal(record.lock.kind, LOCK_OTHER);
	assert_int_equal(record.lock.address, 0);
	assert_int_equal(write(words[1], "x", 1), 1);
	await_end();
	assert_int_equal(find_locks(&f, pid, found), 1);
	assert_int_equal(found[0].key.kind, LOCK_OTHER);
	assert_int_equal(found[0].key.address, 0);
	harness_kill(pid);
	end_locks(&f);
}

/* Whoever is outside of the scope is in no account that counts, and is not named as a waker. */
static void nobody_else_is_told_of(void **state)
{
	struct fixture f = begin_locks(&(struct harness_options){ .scoped = true });
	struct found lock, found[LOCKS];
	struct lock_record record;
	struct lock_waker waker;
	char dir[4096], scope[4200];
	pid_t within, beside;

	snprintf(scope, sizeof(scope), "%s/account", f.h->path);
	harness_scope(f.h, scope);
	harness_group(f.h, "beside", dir);
	beside = harness_start(block_for_ever, NULL, dir);
	within = harness_start(block_for_ever, NULL, f.dir);
	harness_sleep_ms(START_MS);
	say_lock(&f, beside);
	assert_int_equal(read_open(&f, beside, &record), 1);
	assert_int_equal(record.tid, 0);
	assert_int_equal(futex(&shared->word, FUTEX_WAKE, 2, NULL), 2);
	harness_sleep_ms(START_MS);
	assert_int_equal(find_locks(&f, beside, found), 0);
	find_lock(&f, within, &shared->word, &lock);
	assert_int_equal(lock.sums.waits, 1);
	assert_int_equal(count_woken(&f, &lock.key, LOCK_WAKER_THREAD, 0, &waker), 1);
	assert_int_equal(waker.tgid, 0);
	assert_string_equal(waker.comm, "");
	harness_kill(within);
	harness_kill(beside);
	end_locks(&f);
}

/* A thread that is watched no more leaves an account of the time before: no wait counts by it. */
static void old_accounts_do_not_count(void **state)
{
	struct fixture f = begin_locks(NULL);
	int watches = bpf_map__fd(f.h->skel->maps.watches);
	pid_t pid = harness_start(hold_word, NULL, f.dir);
	struct found found[LOCKS] = {};
	uint64_t waits;

	harness_sleep_ms(3 * HOLD_MS / 2);
	assert_int_equal(bpf_map_delete_elem(watches, &f.id), 0);
	find_locks(&f, pid, found);
	waits = found[0].sums.waits;
	await_end();
	find_locks(&f, pid, found);
	/* Those that were on their way. */
	assert_in_range(found[0].sums.waits, waits, waits + WAITERS);
	assert_true(found[0].sums.waits < ROUNDS * WAITERS);
	harness_kill(pid);
	end_locks(&f);
}

/* The consumer may write the elements: false ones make false sums and do no harm. */
static void false_words(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(hold_word, NULL, f.dir);
	struct lock_key key = { .slot = SLOT, .tgid = (uint32_t)pid, .kind = LOCK_FUTEX };
	struct found lock;

	key.address = (uint64_t)(uintptr_t)&shared->word;
	memset(&lock.sums, 0xff, sizeof(lock.sums));
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(f.h->skel->maps.locks), &key, &lock.sums, BPF_ANY),
		0);
	await_end();
	find_lock(&f, pid, &shared->word, &lock);
	/* Less than all where the first were over before the element was there. */
	assert_in_range(lock.sums.waits + 1, 1, ROUNDS * WAITERS);
	assert_int_equal(lock.sums.longest_ns, UINT64_MAX);
	harness_kill(pid);
	end_locks(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_without_a_session),
		cmocka_unit_test(full_table_is_counted),
		cmocka_unit_test(short_memory_is_not_full),
		cmocka_unit_test(owners_share_the_tables),
		cmocka_unit_test(other_calls_keep_their_arguments),
		cmocka_unit_test(nobody_else_is_told_of),
		cmocka_unit_test(old_accounts_do_not_count),
		cmocka_unit_test(false_words),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
