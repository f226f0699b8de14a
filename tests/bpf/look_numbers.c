/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * look_numbers.c: the report of `looks` for threads that wait for a time, a child, a futex, a pipe
 * or System V semaphores: the timer's clock and how long it still has, and the numbers of the rest.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "look_fixture.h"
#include "shared/tools/macro.h"

HARNESS_LOADS("looks", "ranges*");

#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#ifndef FUTEX2_SIZE_U32
#define FUTEX2_SIZE_U32 2
#endif
#ifndef FUTEX2_PRIVATE
#define FUTEX2_PRIVATE FUTEX_PRIVATE_FLAG
#endif

#define LONG_S	  100
#define NO_CALL_S 7 /* a thread that sleeps this long has no such system call */

static uint32_t words[2];
static int ends[2], semaphores;

/* One load of the programs for all: each process takes the place of the one before. */
static struct fixture fixture;

static int begin_all(void **state)
{
	fixture = begin_looks("sleep");
	return 0;
}

static int end_all(void **state)
{
	end(&fixture);
	return 0;
}

/* Looks at a process that is in `wait`, or that reports by a short sleep that it cannot be. */
static struct look_on look_at_wait(void (*wait)(void *context), void *context, uint32_t kind)
{
	struct seen_look l;

	harness_kill(fixture.pid);
	fixture.pid = harness_start(wait, context, fixture.dir);
	for (int i = 0; i < 100; i++) {
		read_asleep(fixture.h, fixture.pid, &l);
		/* A look does not fault: the list of futexes may not be resident at that moment. */
		if (l.record.on.kind == kind && (kind != LOOK_ON_FUTEX || l.record.on.address))
			break;
		harness_sleep_ms(10);
	}
	if (l.record.on.kind == LOOK_ON_TIMER && kind != LOOK_ON_TIMER &&
	    l.record.on.longest_ns <= NO_CALL_S * NSEC_PER_SEC)
		skip();
	assert_int_equal(l.record.on.kind, kind);
	return l.record.on;
}

static void have_no_call(void)
{
	for (;;)
		sleep(NO_CALL_S);
}

/* How long a look finds that a sleep of LONG_S has still. */
static void assert_left(const struct look_on *on, int clock)
{
	assert_int_equal(on->number, clock);
	assert_int_equal(on->state, 1);
	assert_in_range(on->longest_ns, (LONG_S - 40) * NSEC_PER_SEC, LONG_S * NSEC_PER_SEC);
}

static void sleep_plainly(void *unused)
{
	struct timespec time = { .tv_sec = LONG_S };

	for (;;)
		syscall(SYS_nanosleep, &time, NULL);
}

static void sleep_by(void *context)
{
	const int *clock = context;
	struct timespec time = { .tv_sec = LONG_S };

	for (;;)
		syscall(SYS_clock_nanosleep, *clock, 0, &time, NULL);
}

static void sleep_until(void *context)
{
	const int *clock = context;
	struct timespec time;

	clock_gettime(*clock, &time);
	time.tv_sec += LONG_S;
	for (;;)
		syscall(SYS_clock_nanosleep, *clock, TIMER_ABSTIME, &time, NULL);
}

/* By whichever clock, and however the time is given. */
static void a_sleep_has_its_clock_and_time(void **state)
{
	int clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_TAI };
	struct look_on on = look_at_wait(sleep_plainly, NULL, LOOK_ON_TIMER);

	assert_left(&on, CLOCK_MONOTONIC);
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		on = look_at_wait(sleep_until, &clocks[i], LOOK_ON_TIMER);
		assert_left(&on, clocks[i]);
	}
	/* A relative sleep by the time of day is one by CLOCK_MONOTONIC: setting it changes none.
	 */
	on = look_at_wait(sleep_by, &clocks[1], LOOK_ON_TIMER);
	assert_left(&on, CLOCK_MONOTONIC);
	on = look_at_wait(sleep_by, &clocks[2], LOOK_ON_TIMER);
	assert_left(&on, CLOCK_BOOTTIME);
}

/* A sleep by the CPU time of its process has another kind of timer: its clock alone is reported. */
static void cpu_time_has_no_end(void **state)
{
	int clock = CLOCK_PROCESS_CPUTIME_ID;
	struct look_on on = look_at_wait(sleep_by, &clock, LOOK_ON_TIMER);

	assert_int_equal(on.number, CLOCK_PROCESS_CPUTIME_ID);
	assert_int_equal(on.state, 0);
	assert_int_equal(on.longest_ns, 0);
}

struct alarm {
	int clock;
	time_t s;
};

static void read_timerfd(void *context)
{
	const struct alarm *a = context;
	struct itimerspec time = { .it_value.tv_sec = a->s };
	int fd = timerfd_create(a->clock, 0);
	uint64_t times;

	if (fd < 0)
		have_no_call();
	timerfd_settime(fd, 0, &time, NULL);
	for (;;)
		if (read(fd, &times, sizeof(times)) < 0)
			_exit(1);
}

static void a_timerfd_is_a_timer(void **state)
{
	struct alarm alarms[] = { { CLOCK_MONOTONIC, LONG_S },
				  { CLOCK_REALTIME, LONG_S },
				  { CLOCK_BOOTTIME, LONG_S },
				  { CLOCK_MONOTONIC, 0 },
				  { CLOCK_BOOTTIME_ALARM, LONG_S } };

	for (size_t i = 0; i < ARRAY_SIZE(alarms); i++) {
		struct look_on on = look_at_wait(read_timerfd, &alarms[i], LOOK_ON_TIMER);

		if (alarms[i].s && alarms[i].clock != CLOCK_BOOTTIME_ALARM) {
			/* One by the time of day that is set relatively is one by
			 * CLOCK_MONOTONIC. */
			assert_left(&on, alarms[i].clock == CLOCK_REALTIME ? CLOCK_MONOTONIC
									   : alarms[i].clock);
			continue;
		}
		assert_int_equal(on.number, alarms[i].clock);
		assert_int_equal(on.state, 0);
		assert_int_equal(on.longest_ns, 0);
	}
}

/* The list has `*bytes` bytes before the end of a page. */
static void wait_for_futexes(void *bytes)
{
	static char _Alignas(4096) pages[2][4096];
	struct futex_waitv *list = (struct futex_waitv *)(pages[1] - *(const size_t *)bytes);

	for (size_t i = 0; i < 2; i++)
		list[i] = (struct futex_waitv){ .uaddr = (uintptr_t)&words[1 - i],
						.flags = FUTEX_32 | FUTEX_PRIVATE_FLAG };
	for (;;)
		if (syscall(SYS_futex_waitv, list, 2, 0, NULL, CLOCK_MONOTONIC) < 0 &&
		    errno == ENOSYS)
			have_no_call();
}

static void wait_for_futex(void *unused)
{
	for (;;)
		if (syscall(SYS_futex_wait, &words[1], 0ul, ~0u, FUTEX2_SIZE_U32 | FUTEX2_PRIVATE,
			    NULL, CLOCK_MONOTONIC) < 0 &&
		    errno == ENOSYS)
			have_no_call();
}

/* Its entry may begin in one page and end in the next. */
static void the_first_of_futexes(void **state)
{
	size_t before[] = { 8, 16, sizeof(struct futex_waitv), 2 * sizeof(struct futex_waitv) };

	for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
		struct look_on on = look_at_wait(wait_for_futexes, &before[i], LOOK_ON_FUTEX);

		assert_int_equal(on.address, (uintptr_t)&words[1]);
	}
}

static void the_newer_futex(void **state)
{
	struct look_on on = look_at_wait(wait_for_futex, NULL, LOOK_ON_FUTEX);

	assert_int_equal(on.address, (uintptr_t)&words[1]);
	assert_int_equal(on.number, 0); /* its second argument is no operation */
}

static void wait_on_a_condition(void *unused)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&condition, &lock);
}

static void wait_for_a_mutex(void *unused)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	for (;;)
		pthread_mutex_lock(&lock);
}

/*
 * What glibc does on a condition variable, and at a mutex: known_wait.c distinguishes them by it.
 */
static void what_a_futex_does(void **state)
{
	struct look_on on = look_at_wait(wait_on_a_condition, NULL, LOOK_ON_FUTEX);

	assert_int_equal(on.number & FUTEX_CMD_MASK, FUTEX_WAIT_BITSET);
	on = look_at_wait(wait_for_a_mutex, NULL, LOOK_ON_FUTEX);
	assert_int_equal(on.number & FUTEX_CMD_MASK, FUTEX_WAIT);
}

struct child {
	idtype_t which;
	pid_t pid; /* shared with the process that waits */
};

static void wait_by_id(void *context)
{
	struct child *c = context;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	c->pid = pid;
	for (;;)
		waitid(c->which, c->which == P_PID ? (id_t)pid : 0, &info, WEXITED);
}

static void a_child_by_its_id(void **state)
{
	struct child *c =
		mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct look_on on;

	assert_ptr_not_equal(c, MAP_FAILED);
	c->which = P_PID;
	on = look_at_wait(wait_by_id, c, LOOK_ON_CHILD);
	assert_int_equal(on.number, c->pid);
	assert_int_equal(on.peer_pid, c->pid);
	assert_int_equal(on.peer_flags, 0);
	assert_true(on.peer_comm[0]);
	kill(c->pid, SIGKILL);
	c->which = P_ALL;
	on = look_at_wait(wait_by_id, c, LOOK_ON_CHILD);
	assert_int_equal(on.number, -1);
	/* The only child of the thread. */
	assert_int_equal(on.peer_pid, c->pid);
	kill(c->pid, SIGKILL);
	munmap(c, sizeof(*c));
}

static void read_pipe(void *context)
{
	const int *call = context;
	char bytes[8];
	struct iovec part = { bytes, sizeof(bytes) };
	int out[2];

	if (pipe(out) < 0)
		_exit(1);
	for (;;)
		if (*call == SYS_splice)
			syscall(SYS_splice, ends[0], NULL, out[1], NULL, 8, 0);
		else if (*call == SYS_tee)
			syscall(SYS_tee, ends[0], out[1], 8, 0);
		else
			syscall(SYS_preadv2, ends[0], &part, 1, -1L, -1L, 0);
}

static void fill_pipe(void *context)
{
	static char bytes[1 << 16];
	const int *call = context;
	struct iovec part = { bytes, sizeof(bytes) };

	for (;;)
		if (*call == SYS_vmsplice)
			syscall(SYS_vmsplice, ends[1], &part, 1, 0);
		else
			syscall(SYS_pwritev2, ends[1], &part, 1, -1L, -1L, 0);
}

static void descriptors_of_newer_calls(void **state)
{
	int readers[] = { SYS_preadv2, SYS_splice, SYS_tee };
	int writers[] = { SYS_pwritev2, SYS_vmsplice };

	assert_int_equal(pipe(ends), 0);
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		struct look_on on = look_at_wait(read_pipe, &readers[i], LOOK_ON_PIPE);

		assert_int_equal(on.number, ends[0]);
		assert_int_equal(on.state, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(writers); i++) {
		struct look_on on = look_at_wait(fill_pipe, &writers[i], LOOK_ON_PIPE);

		assert_int_equal(on.number, ends[1]);
		assert_int_equal(on.state, 1); /* full */
	}
	close(ends[0]);
	close(ends[1]);
}

static void wait_for_semaphore(void *context)
{
	const bool *timed = context;
	struct sembuf take = { .sem_op = -1 };
	struct timespec time = { .tv_sec = LONG_S };

	for (;;)
		if (semtimedop(semaphores, &take, 1, *timed ? &time : NULL) < 0 && errno == ENOSYS)
			have_no_call();
}

static void semaphores_by_their_set(void **state)
{
	for (int timed = 0; timed < 2; timed++) {
		bool with_time = timed;
		struct look_on on;

		semaphores = semget(IPC_PRIVATE, 1, 0600);
		assert_true(semaphores >= 0);
		on = look_at_wait(wait_for_semaphore, &with_time, LOOK_ON_SEMAPHORES);
		assert_int_equal(on.number, semaphores);
		semctl(semaphores, 0, IPC_RMID);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleep_has_its_clock_and_time),
		cmocka_unit_test(cpu_time_has_no_end),
		cmocka_unit_test(a_timerfd_is_a_timer),
		cmocka_unit_test(the_first_of_futexes),
		cmocka_unit_test(the_newer_futex),
		cmocka_unit_test(what_a_futex_does),
		cmocka_unit_test(a_child_by_its_id),
		cmocka_unit_test(descriptors_of_newer_calls),
		cmocka_unit_test(semaphores_by_their_set),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, begin_all, end_all);
}
