/* SPDX-License-Identifier: BSD-2-Clause */
/* long_waits.c: single long waits: their begin and end, their kind, and their waker. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lock_fixture.h"

HARNESS_LOADS("account_*", "lock_*");

#define LONG_MS	  40
#define SHORT	  400 /* waits that are too short to be reported */
#define WAITS_MAX 4096
#define PREEMPTED \
	2 /* of a test's waits: on a busy machine the time is up before the thread sleeps */

/* The notes of the processes under test, beside struct shared. */
static int pipe_fds[2], socket_fds[2];

/* Whether it is the sleep of come_in, which may be long enough. */
static bool is_coming_in(const struct long_wait *w)
{
	return w->part == ACCOUNT_SLEEP && w->end_ns - w->begin_ns < 2 * MSEC;
}

/*
 * Reads the long waits of thread `tid` (0: of all) into `waits`, but for those of coming in.
 * Returns how many there are.
 */
static size_t read_waits(const struct fixture *f, pid_t tid, struct long_wait *waits, size_t max)
{
	int fd = bpf_map__fd(f->h->skel->maps.long_waits);
	uint32_t key, *last = NULL;
	size_t n = 0;

	while (bpf_map_get_next_key(fd, last, &key) == 0 && n < max) {
		if (bpf_map_lookup_elem(fd, &key, &waits[n]) == 0 &&
		    (!tid || waits[n].tid == (uint32_t)tid) && !is_coming_in(&waits[n]))
			n++;
		last = &key;
	}
	return n;
}

static void wake_pipe(void)
{
	(void)!write(pipe_fds[1], "", 1);
}

static void wait_pipe(void)
{
	char byte;

	(void)!read(pipe_fds[0], &byte, 1);
}

static void wake_socket(void)
{
	(void)!write(socket_fds[1], "", 1);
}

static void wait_socket(void)
{
	char byte;

	recv(socket_fds[0], &byte, 1, 0);
}

static void wait_poll(void)
{
	struct pollfd fd = { .fd = pipe_fds[0], .events = POLLIN };
	char byte;

	poll(&fd, 1, -1);
	(void)!read(pipe_fds[0], &byte, 1);
}

static void wait_sleep(void)
{
	harness_sleep_ms(LONG_MS);
}

static void wait_timeout(void)
{
	poll(NULL, 0, LONG_MS);
}

static void on_signal(int number)
{
}

static void wait_signal(void)
{
	const struct timespec time = { .tv_sec = 10 };

	nanosleep(&time, NULL);
}

static void wake_signal(void)
{
	kill(shared->pid, SIGUSR1);
}

static const struct kind {
	void (*wait)(void);
	void (*wake)(void); /* NULL: no thread does */
	uint32_t part, end;
} kinds[] = {
	{ wait_pipe, wake_pipe, ACCOUNT_PIPE, LONG_WAIT_THREAD },
	{ wait_socket, wake_socket, ACCOUNT_SOCKET, LONG_WAIT_THREAD },
	{ wait_poll, wake_pipe, ACCOUNT_IDLE, LONG_WAIT_THREAD },
	{ wait_sleep, NULL, ACCOUNT_SLEEP, LONG_WAIT_INTERRUPT },
	{ wait_timeout, NULL, ACCOUNT_IDLE, LONG_WAIT_INTERRUPT },
	{ wait_signal, wake_signal, ACCOUNT_SLEEP, LONG_WAIT_SIGNAL },
};

/* Waits for each kind, and notes when. */
static struct told {
	uint64_t begin_ns[ARRAY_SIZE(kinds)], end_ns[ARRAY_SIZE(kinds)];
	uint32_t turn; /* of the one that wakes */
	pid_t child;
} * told;

static void wait_for_all(void *unused)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGUSR1, &action, NULL);
	shared->pid = getpid();
	come_in();
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		told->begin_ns[i] = harness_now_ns();
		__atomic_store_n(&told->turn, i + 1, __ATOMIC_SEQ_CST);
		kinds[i].wait();
		told->end_ns[i] = harness_now_ns();
	}
	say_end();
}

static void wake_all(void *unused)
{
	uint32_t turn;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		do {
			harness_sleep_ms(1);
			turn = __atomic_load_n(&told->turn, __ATOMIC_SEQ_CST);
		} while (turn <= i);
		harness_sleep_ms(LONG_MS);
		if (kinds[i].wake)
			kinds[i].wake();
	}
	for (;;)
		pause();
}

static const struct long_wait *find_wait(const struct long_wait *waits, size_t n, uint64_t at_ns)
{
	for (size_t i = 0; i < n; i++)
		if (waits[i].begin_ns < at_ns && at_ns < waits[i].end_ns)
			return &waits[i];
	fail_msg("no wait of that time");
	return NULL;
}

static void begin_told(void)
{
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(told, MAP_FAILED);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, socket_fds), 0);
}

static void end_told(void)
{
	munmap(told, sizeof(*told));
	for (int i = 0; i < 2; i++) {
		close(pipe_fds[i]);
		close(socket_fds[i]);
	}
}

/* Each kind of wait has its times, its part, and its waker, of another process. */
static void kinds_are_told(void **state)
{
	struct fixture f = begin_locks(NULL);
	struct long_wait waits[64];
	pid_t waiter, waker;
	size_t n;

	begin_told();
	waker = harness_start(wake_all, NULL, f.dir);
	waiter = harness_start(wait_for_all, NULL, f.dir);
	await_end();
	n = read_waits(&f, waiter, waits, ARRAY_SIZE(waits));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct long_wait *w =
			find_wait(waits, n, (told->begin_ns[i] + told->end_ns[i]) / 2);
		bool by_thread = kinds[i].end != LONG_WAIT_INTERRUPT;

		assert_int_equal(w->part, kinds[i].part);
		assert_int_equal(w->end, kinds[i].end);
		assert_int_equal(w->tgid, waiter);
		assert_int_equal(w->slot, SLOT);
		assert_int_equal(w->by_tid, by_thread ? waker : 0);
		assert_int_equal(w->address, 0);
		assert_true(w->begin_ns >= told->begin_ns[i] && w->end_ns <= told->end_ns[i]);
		assert_near_ms(w->end_ns - w->begin_ns, told->end_ns[i] - told->begin_ns[i]);
	}
	harness_kill(waiter);
	harness_kill(waker);
	end_told();
	end_locks(&f);
}

/* A wait for a lock has the lock's address. */
static void locks_have_their_address(void **state)
{
	struct fixture f = begin_locks(NULL);
	pid_t pid = harness_start(hold_word, NULL, f.dir);
	struct long_wait waits[WAITERS * ROUNDS + 64];
	size_t n, locks = 0;

	await_end();
	n = read_waits(&f, 0, waits, ARRAY_SIZE(waits));
	for (size_t i = 0; i < n; i++) {
		if (waits[i].part != ACCOUNT_LOCK)
			continue;
		assert_int_equal(waits[i].address, (uint64_t)(uintptr_t)&shared->word);
		assert_int_equal(waits[i].by_tid, shared->waker);
		assert_string_equal(waits[i].by_comm, "holder");
		assert_int_equal(waits[i].end, LONG_WAIT_THREAD);
		locks++;
	}
	assert_int_equal(locks, ROUNDS * WAITERS);
	harness_kill(pid);
	end_locks(&f);
}

static void have_child(void *unused)
{
	pid_t pid;

	come_in();
	pid = fork();
	if (pid == 0) {
		harness_sleep_ms(LONG_MS);
		_exit(0);
	}
	told->child = pid;
	waitpid(pid, NULL, 0);
	say_end();
}

/* Who waits for a child is woken by it, as it ends. */
static void children_are_told(void **state)
{
	struct fixture f = begin_locks(NULL);
	struct long_wait waits[64];
	size_t n, found = 0;
	pid_t pid;

	begin_told();
	pid = harness_start(have_child, NULL, f.dir);
	await_end();
	n = read_waits(&f, pid, waits, ARRAY_SIZE(waits));
	for (size_t i = 0; i < n; i++) {
		if (waits[i].part != ACCOUNT_CHILD)
			continue;
		assert_int_equal(waits[i].end, LONG_WAIT_THREAD);
		assert_int_equal(waits[i].by_tid, told->child);
		found++;
	}
	assert_int_equal(found, 1);
	harness_kill(pid);
	end_told();
	end_locks(&f);
}

static void *answer_at_once(void *unused)
{
	char byte;

	while (read(socket_fds[1], &byte, 1) == 1 && write(socket_fds[1], "", 1) == 1)
		;
	return NULL;
}

/* Many short waits, and one long one among them now and then. */
static void ask_often(void *unused)
{
	pthread_t other;
	char byte;

	come_in();
	pthread_create(&other, NULL, answer_at_once, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < SHORT; i++)
			if (write(socket_fds[0], "", 1) != 1 || read(socket_fds[0], &byte, 1) != 1)
				return;
		harness_sleep_ms(LONG_MS / 4);
	}
	say_end();
}

/* Short waits leave nothing, however many, and hide no long one. */
static void short_waits_are_not_told(void **state)
{
	struct fixture f = begin_locks(NULL);
	struct long_wait waits[WAITS_MAX];
	size_t n, sleeps = 0;
	pid_t pid;

	begin_told();
	pid = harness_start(ask_often, NULL, f.dir);
	await_end();
	n = read_waits(&f, pid, waits, ARRAY_SIZE(waits));
	for (size_t i = 0; i < n; i++) {
		assert_true(waits[i].end_ns - waits[i].begin_ns >= LONG_WAIT_NS);
		sleeps += waits[i].part == ACCOUNT_SLEEP;
	}
	assert_in_range(sleeps, ROUNDS - PREEMPTED, ROUNDS);
	harness_kill(pid);
	end_told();
	end_locks(&f);
}

static void nap_often(void *unused)
{
	come_in();
	for (int i = 0; i < 20; i++)
		harness_sleep_ms(5);
	say_end();
}

/* What finds no room is counted, with its time. */
static void full_table_is_counted(void **state)
{
	struct fixture f = begin_locks(&(struct harness_options){ .long_waits = 4 });
	pid_t pid = harness_start(nap_often, NULL, f.dir);
	struct slot_locks each[HARNESS_CPUS], all = {};
	struct long_wait waits[64];
	uint32_t slot = SLOT;
	size_t n;

	await_end();
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(f.h->skel->maps.lock_losses), &slot, each),
			 0);
	for (int i = 0; i < libbpf_num_possible_cpus(); i++) {
		all.long_waits += each[i].long_waits;
		all.long_wait_ns += each[i].long_wait_ns;
	}
	n = read_waits(&f, pid, waits, ARRAY_SIZE(waits));
	assert_true(n <= 4 && all.long_waits > 0);
	assert_in_range(n + all.long_waits, 20 - PREEMPTED, 20);
	assert_true(all.long_wait_ns >= all.long_waits * 5 * MSEC);
	harness_kill(pid);
	end_locks(&f);
}

/* Outside of a session, and when the consumer gives no sign of life, nothing is kept. */
static void nothing_without_a_session(void **state)
{
	struct fixture f = begin_locks(NULL);
	struct long_wait waits[64];
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		shared->ended = 0;
		f.h->slots[SLOT].state = i ? SLOT_CAPTURE : SLOT_RECORDER;
		f.h->control->heartbeat_ns = i ? harness_now_ns() - 70000 * MSEC : harness_now_ns();
		pid = harness_start(nap_often, NULL, f.dir);
		await_end();
		assert_int_equal(read_waits(&f, 0, waits, ARRAY_SIZE(waits)), 0);
		harness_kill(pid);
	}
	end_locks(&f);
}

static void read_once(void *unused)
{
	come_in();
	wait_pipe();
	say_end();
}

/* A thread outside of the scope has no wait, and is not named as a waker. */
static void nobody_else_is_told_of(void **state)
{
	struct fixture f = begin_locks(&(struct harness_options){ .scoped = true });
	char dir[4096], scope[4200];
	struct long_wait waits[64];
	pid_t within, beside;
	size_t n, by_thread = 0;

	begin_told();
	snprintf(scope, sizeof(scope), "%s/account", f.h->path);
	harness_scope(f.h, scope);
	harness_group(f.h, "beside", dir);
	beside = harness_start(nap_often, NULL, dir);
	within = harness_start(read_once, NULL, f.dir);
	await_end();
	shared->ended = 0;
	wake_pipe();
	await_end();
	assert_int_equal(read_waits(&f, beside, waits, ARRAY_SIZE(waits)), 0);
	n = read_waits(&f, within, waits, ARRAY_SIZE(waits));
	assert_true(n > 0); /* on a busy machine it may have waited before it read, too */
	for (size_t i = 0; i < n; i++) {
		by_thread += waits[i].end == LONG_WAIT_THREAD;
		assert_int_equal(waits[i].by_tid, 0);
		assert_string_equal(waits[i].by_comm, "");
	}
	assert_true(by_thread > 0);
	harness_kill(within);
	harness_kill(beside);
	end_told();
	end_locks(&f);
}

/* The consumer may write the accounts: false ones make false waits of threads that wait, no more.
 */
static void false_accounts(void **state)
{
	struct fixture f = begin_locks(NULL);
	const struct thread_times t = { .account = { .slot = SLOT, .kind = 0xfffffff3u } };
	struct long_wait waits[64];
	size_t n;
	pid_t pid;

	begin_told();
	pid = harness_start(read_once, NULL, f.dir);
	harness_sleep_ms(START_MS);
	put_times(&f, pid, &t, true);
	wake_pipe();
	await_end();
	n = read_waits(&f, pid, waits, ARRAY_SIZE(waits));
	assert_int_equal(n, 1);
	assert_int_equal(waits[0].part, ACCOUNT_OTHER);
	assert_int_equal(waits[0].begin_ns, 0);
	assert_int_equal(waits[0].address, 0);
	harness_kill(pid);
	end_told();
	end_locks(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_are_told),
		cmocka_unit_test(locks_have_their_address),
		cmocka_unit_test(children_are_told),
		cmocka_unit_test(short_waits_are_not_told),
		cmocka_unit_test(full_table_is_counted),
		cmocka_unit_test(nothing_without_a_session),
		cmocka_unit_test(nobody_else_is_told_of),
		cmocka_unit_test(false_accounts),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
