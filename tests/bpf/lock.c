/* SPDX-License-Identifier: BSD-2-Clause */
/* lock.c: waits for locks that last for known times and that known threads end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include "lock_fixture.h"

HARNESS_LOADS("account_*", "lock_*");

static uint32_t count_threads(const struct lock_sums *s)
{
	int n = 0;

	for (int i = 0; i < LOCK_THREAD_WORDS; i++)
		n += __builtin_popcountll(s->threads[i]);
	return (uint32_t)n;
}

static uint64_t count_steps(const struct lock_sums *s)
{
	uint64_t n = 0;

	for (int i = 0; i < LOCK_BUCKETS; i++)
		n += s->buckets[i];
	return n;
}

/* Waits of known length, that one thread ended: the report equals the threads' own measurement. */
static void holds_are_told(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(hold_word, NULL, f.dir);
	struct lock_waker waker;
	struct found lock;

	await_end();
	find_lock(&f, pid, &shared->word, &lock);
	assert_int_equal(lock.key.kind, LOCK_FUTEX);
	assert_int_equal(lock.key.slot, SLOT);
	assert_int_equal(lock.sums.waits, ROUNDS * WAITERS);
	assert_int_equal(count_steps(&lock.sums), lock.sums.waits);
	assert_near_ms(lock.sums.total_ns, shared->waited_ns);
	assert_true(lock.sums.total_ns <= shared->waited_ns);
	assert_true(lock.sums.longest_ns >= HOLD_MS * MSEC / 2);
	assert_string_equal(lock.sums.longest_comm, "waiter");
	assert_string_equal(lock.sums.comm, "holder");
	assert_int_equal(count_threads(&lock.sums), WAITERS);
	assert_int_equal(
		count_woken(&f, &lock.key, LOCK_WAKER_THREAD, (uint32_t)shared->waker, &waker),
		lock.sums.waits);
	assert_near_ms(waker.held_ns, lock.sums.total_ns);
	assert_int_equal(waker.tgid, pid);
	assert_string_equal(waker.comm, "holder");
	harness_kill(pid);
	end_locks(&f);
}

static void wait_in_vain(void *unused)
{
	const struct timespec time = { .tv_nsec = HOLD_MS * MSEC };

	come_in();
	for (int i = 0; i < ROUNDS; i++)
		futex(&shared->word, FUTEX_WAIT, 0, &time);
	say_end();
}

/* The time runs out: a timer ends the wait, and the thread on the CPU then is not blamed. */
static void timeouts_blame_nobody(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t burner = harness_spawn("burner", "burn", f.dir), pid;
	uint64_t ran_ns = harness_process_1_ns(), missed;
	struct lock_waker waker;
	struct found lock;

	pid = harness_start(wait_in_vain, NULL, f.dir);
	await_end();
	find_lock(&f, pid, &shared->word, &lock);
	missed = ROUNDS - lock.sums.waits;
	assert_true(missed <= (harness_process_1_ns() != ran_ns));
	assert_near_ms(lock.sums.total_ns, lock.sums.waits * HOLD_MS * MSEC);
	assert_int_equal(count_woken(&f, &lock.key, LOCK_WAKER_INTERRUPT, 0, &waker),
			 lock.sums.waits);
	assert_int_equal(waker.tgid, 0);
	harness_kill(pid);
	harness_kill(burner);
	end_locks(&f);
}

static void on_signal(int number)
{
}

static void wait_for_signals(void *unused)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGUSR1, &action, NULL);
	come_in();
	for (int i = 0; i < ROUNDS; i++)
		futex(&shared->word, FUTEX_WAIT, 0, NULL);
	say_end();
}

/* A signal ends the wait: the sender has held nothing. */
static void signals_blame_nobody(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(wait_for_signals, NULL, f.dir);
	struct lock_waker waker;
	struct found lock;

	for (int i = 0; i < 100 && !shared->ended; i++) {
		harness_sleep_ms(HOLD_MS);
		kill(pid, SIGUSR1);
	}
	await_end();
	find_lock(&f, pid, &shared->word, &lock);
	assert_int_equal(lock.sums.waits, ROUNDS);
	assert_int_equal(count_woken(&f, &lock.key, LOCK_WAKER_SIGNAL, 0, &waker), ROUNDS);
	harness_kill(pid);
	end_locks(&f);
}

static void *take_mutex(void *unused)
{
	pthread_mutex_lock(&shared->mutex);
	pthread_mutex_unlock(&shared->mutex);
	return NULL;
}

static void hold_pi(void *unused)
{
	pthread_mutexattr_t attributes;
	pthread_t waiter;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&shared->mutex, &attributes);
	shared->waker = (pid_t)syscall(SYS_gettid);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&shared->mutex);
		pthread_create(&waiter, NULL, take_mutex, NULL);
		harness_sleep_ms(HOLD_MS);
		pthread_mutex_unlock(&shared->mutex);
		pthread_join(waiter, NULL);
	}
	say_end();
}

static void priority_inheritance_is_told(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(hold_pi, NULL, f.dir);
	struct lock_waker waker;
	struct found lock;

	await_end();
	find_lock(&f, pid, &shared->mutex, &lock);
	assert_int_equal(lock.key.kind, LOCK_PI);
	assert_int_equal(lock.sums.waits, ROUNDS);
	assert_int_equal(
		count_woken(&f, &lock.key, LOCK_WAKER_THREAD, (uint32_t)shared->waker, &waker),
		ROUNDS);
	harness_kill(pid);
	end_locks(&f);
}

static void *die_holding(void *unused)
{
	shared->waker = (pid_t)syscall(SYS_gettid);
	pthread_mutex_lock(&shared->mutex);
	harness_sleep_ms(HOLD_MS);
	return NULL;
}

static void leave_robust(void *unused)
{
	pthread_mutexattr_t attributes;
	pthread_t owner;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->mutex, &attributes);
	pthread_create(&owner, NULL, die_holding, NULL);
	harness_sleep_ms(HOLD_MS / 2);
	shared->word = (uint32_t)pthread_mutex_lock(&shared->mutex);
	say_end();
}

/* The owner ends with a robust mutex: its end wakes the next one, and it is the one to name. */
static void dead_owners_are_told(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(leave_robust, NULL, f.dir);
	struct lock_waker waker;
	struct found lock;

	await_end();
	assert_int_equal(shared->word, EOWNERDEAD);
	find_lock(&f, pid, &shared->mutex, &lock);
	assert_int_equal(lock.sums.waits, 1);
	assert_int_equal(
		count_woken(&f, &lock.key, LOCK_WAKER_THREAD, (uint32_t)shared->waker, &waker), 1);
	harness_kill(pid);
	end_locks(&f);
}

static void *lock_file(void *unused)
{
	int fd = open("/tmp", O_RDONLY | O_CLOEXEC);

	flock(fd, LOCK_EX);
	shared->word = 1;
	close(fd);
	return NULL;
}

static void hold_file(void *unused)
{
	int fd = open("/tmp", O_RDONLY | O_CLOEXEC);
	pthread_t waiter;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0)
		harness_sleep_ms(10);
	pthread_create(&waiter, NULL, lock_file, NULL);
	harness_sleep_ms(HOLD_MS);
	flock(fd, LOCK_UN);
	while (!shared->word)
		harness_sleep_ms(1);
	say_end();
}

/* A lock without an address. */
static void file_locks_are_told(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(hold_file, NULL, f.dir);
	struct found lock;

	await_end();
	find_lock(&f, pid, NULL, &lock);
	assert_int_equal(lock.key.kind, LOCK_FILE);
	assert_int_equal(lock.sums.waits, 1);
	harness_kill(pid);
	end_locks(&f);
}

/* A wait that is not over has no wake-up: the list of those has it. */
static void open_waits_are_listed(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(block_for_ever, NULL, f.dir);
	struct account_record account;
	struct lock_record record;

	for (int i = 0; i < 50; i++) {
		harness_sleep_ms(START_MS);
		read_accounts(&f, pid, &account);
		if (read_open(&f, pid, &record) == 1 &&
		    record.now_ns - record.since_ns >= START_MS * MSEC)
			break;
	}
	assert_int_equal(record.lock.address, (uint64_t)(uintptr_t)&shared->word);
	assert_int_equal(record.lock.tgid, pid);
	assert_true(record.now_ns - record.since_ns >= START_MS * MSEC);
	assert_true(record.now_ns - record.since_ns <= 50 * START_MS * MSEC);
	harness_kill(pid);
	end_locks(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_are_told),
		cmocka_unit_test(timeouts_blame_nobody),
		cmocka_unit_test(signals_blame_nobody),
		cmocka_unit_test(priority_inheritance_is_told),
		cmocka_unit_test(dead_owners_are_told),
		cmocka_unit_test(file_locks_are_told),
		cmocka_unit_test(open_waits_are_listed),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
