/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_herd.c: waits that are recognised as those of threads that were woken together and without
 * effect.
 */
#include <limits.h>

#include "lock_fixture.h"

HARNESS_LOADS("account_*", "lock_*");

#define HERD	6
#define TURNS	40
#define HERD_MS 2
#define WORK_NS 400000ull

/* What the threads count themselves: wake-ups after which they had to wait at once. */
static uint64_t in_vain, waits;

static bool is_over(void)
{
	return __atomic_load_n(&shared->pid, __ATOMIC_SEQ_CST) != 0;
}

/* Wants the lock that wakes all waiters at each release, and has it by itself a while. */
static void *join_herd(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		bool woken = false;

		while (__atomic_exchange_n(&shared->word, 1, __ATOMIC_SEQ_CST)) {
			if (woken)
				__atomic_fetch_add(&in_vain, 1, __ATOMIC_SEQ_CST);
			woken = futex(&shared->word, FUTEX_WAIT, 1, NULL) == 0;
			if (woken)
				__atomic_fetch_add(&waits, 1, __ATOMIC_SEQ_CST);
		}
		harness_sleep_ms(HERD_MS);
		__atomic_store_n(&shared->word, 0, __ATOMIC_SEQ_CST);
		futex(&shared->word, FUTEX_WAKE, INT_MAX, NULL);
	}
	return NULL;
}

static void run_herd(void *unused)
{
	pthread_t threads[HERD];

	for (int i = 0; i < HERD; i++)
		pthread_create(&threads[i], NULL, join_herd, NULL);
	for (int i = 0; i < HERD; i++)
		pthread_join(threads[i], NULL);
	shared->waited_ns = in_vain << 32 | waits;
	say_end();
}

static void find_after(void (*run)(void *), struct found *ret_lock)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(run, NULL, f.dir);

	await_end();
	find_lock(&f, pid, &shared->word, ret_lock);
	ret_lock->sums.start_ns = shared->waited_ns;
	harness_kill(pid);
	end_locks(&f);
}

/* Never more than the threads count, and of six that are woken each time more than a half. */
static void herds_are_told(void **state)
{
	struct found lock;
	uint64_t vain, all;

	find_after(run_herd, &lock);
	vain = lock.sums.start_ns >> 32;
	all = (uint32_t)lock.sums.start_ns;
	print_message("%u waits again, of %llu in vain, of %llu\n", lock.sums.again,
		      (unsigned long long)vain, (unsigned long long)all);
	assert_true(vain * 2 > all);
	assert_true(lock.sums.again * 2 > vain);
	assert_true(lock.sums.again <= vain);
}

/* CPU time of the thread: how long it runs, with any other users of the CPU. */
static uint64_t run_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000 * MSEC + (uint64_t)time.tv_nsec;
}

/* Waits for the word to change, then works. */
static void wait_and_work(uint64_t work_ns)
{
	uint32_t seen = 0;

	while (!is_over()) {
		uint64_t until_ns;

		while (__atomic_load_n(&shared->word, __ATOMIC_SEQ_CST) == seen && !is_over())
			futex(&shared->word, FUTEX_WAIT, seen, NULL);
		seen = __atomic_load_n(&shared->word, __ATOMIC_SEQ_CST);
		until_ns = run_ns() + work_ns;
		while (run_ns() < until_ns)
			;
	}
}

static void *work_long(void *unused)
{
	wait_and_work(WORK_NS);
	return NULL;
}

static void *work_short(void *unused)
{
	wait_and_work(0);
	return NULL;
}

/* Wakes all waiters, `count` of them with each call. */
static void give_work(void *(*work)(void *), int calls, int count)
{
	pthread_t threads[HERD];

	for (int i = 0; i < HERD; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int turn = 0; turn < TURNS; turn++) {
		harness_sleep_ms(10);
		__atomic_fetch_add(&shared->word, 1, __ATOMIC_SEQ_CST);
		for (int i = 0; i < calls; i++)
			futex(&shared->word, FUTEX_WAKE, (uint32_t)count, NULL);
	}
	shared->pid = 1;
	futex(&shared->word, FUTEX_WAKE, INT_MAX, NULL);
	say_end();
}

static void give_each(void *unused)
{
	give_work(work_short, HERD, 1);
}

static void give_all(void *unused)
{
	give_work(work_long, 1, INT_MAX);
}

/* Who is woken by a call of its own was not woken together with others, however short it runs. */
static void queues_are_none(void **state)
{
	struct found lock;

	find_after(give_each, &lock);
	assert_true(lock.sums.waits > TURNS);
	assert_int_equal(lock.sums.again, 0);
}

/* A thread that runs for longer than a useless wake-up has had the lock. */
static void work_is_none(void **state)
{
	struct found lock;

	find_after(give_all, &lock);
	assert_true(lock.sums.waits > TURNS);
	/* Where others want the CPUs, a turn may meet a thread that has just begun to work. */
	assert_true(lock.sums.again <= TURNS / 20);
}

static void *take_turns(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&shared->mutex);
		harness_sleep_ms(1);
		pthread_mutex_unlock(&shared->mutex);
	}
	return NULL;
}

static void run_convoy(void *unused)
{
	pthread_t threads[HERD];

	pthread_mutex_init(&shared->mutex, NULL);
	for (int i = 0; i < HERD; i++)
		pthread_create(&threads[i], NULL, take_turns, NULL);
	for (int i = 0; i < HERD; i++)
		pthread_join(threads[i], NULL);
	say_end();
}

static void convoys_are_none(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(run_convoy, NULL, f.dir);
	struct found lock;

	await_end();
	find_lock(&f, pid, &shared->mutex, &lock);
	assert_true(lock.sums.waits >= TURNS);
	assert_int_equal(lock.sums.again, 0);
	harness_kill(pid);
	end_locks(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(herds_are_told),
		cmocka_unit_test(queues_are_none),
		cmocka_unit_test(work_is_none),
		cmocka_unit_test(convoys_are_none),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
