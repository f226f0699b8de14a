/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * look_lock.c: the report of `looks` for threads that wait for a lock: its kind, and the thread or
 * process that holds it, also in a pid namespace. A process that writes other numbers into the
 * memory of its locks lies about its own threads only.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "look_fixture.h"
#include "shared/tools/macro.h"

HARNESS_LOADS("looks", "ranges*");

#define BIG_BYTES    (256ul << 20)
#define LOCK_BARRIER 2u

enum held_lock { PLAIN, RECURSIVE, PI, ROBUST, READ_OF_WRITER, WRITE_OF_WRITER, KINDS };

/* Shared between the test and the process. */
struct scene {
	enum held_lock kind;
	pid_t holder; /* by its own number */
	pid_t inner;  /* a process in a pid namespace, by the test's number */
	uint32_t words[8];
};

static struct fixture fixture;
static struct scene *scene;
static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t held;

static int begin_all(void **state)
{
	fixture = begin_looks("sleep");
	scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	return scene == MAP_FAILED;
}

static int end_all(void **state)
{
	end(&fixture);
	munmap(scene, sizeof(*scene));
	return 0;
}

static void start(void (*wait)(void *context), void *context)
{
	harness_kill(fixture.pid);
	fixture.pid = harness_start(wait, context, fixture.dir);
}

/*
 * Reads until the thread waits for an object of `kind`, with its memory resident: a snapshot does
 * not fault.
 */
static struct look_on look_at_thread(pid_t tid, uint32_t kind, uint8_t lock)
{
	struct seen_look l;

	for (int i = 0; i < 300; i++) {
		read_asleep(fixture.h, tid, &l);
		if (l.record.on.kind == kind && l.record.on.state == lock)
			break;
		harness_sleep_ms(10);
	}
	assert_int_equal(l.record.on.kind, kind);
	assert_int_equal(l.record.on.state, lock);
	return l.record.on;
}

static void make_mutex(enum held_lock kind)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	if (kind == RECURSIVE)
		pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	if (kind == PI)
		pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	if (kind == ROBUST)
		pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&mutex, &a);
}

static void *hold(void *unused)
{
	if (scene->kind == READ_OF_WRITER || scene->kind == WRITE_OF_WRITER)
		pthread_rwlock_wrlock(&rwlock);
	else
		pthread_mutex_lock(&mutex);
	scene->holder = (pid_t)syscall(SYS_gettid);
	sem_post(&held);
	for (;;)
		pause();
	return NULL;
}

static void wait_for_lock(void *unused)
{
	pthread_t thread;

	make_mutex(scene->kind);
	pthread_create(&thread, NULL, hold, NULL);
	sem_wait(&held);
	if (scene->kind == READ_OF_WRITER)
		pthread_rwlock_rdlock(&rwlock);
	else if (scene->kind == WRITE_OF_WRITER)
		pthread_rwlock_wrlock(&rwlock);
	else
		pthread_mutex_lock(&mutex);
	for (;;)
		pause();
}

static void the_thread_that_holds_it(void **state)
{
	for (int kind = 0; kind < KINDS; kind++) {
		bool writer = kind == READ_OF_WRITER || kind == WRITE_OF_WRITER;
		struct look_on on;

		scene->kind = (enum held_lock)kind;
		start(wait_for_lock, NULL);
		on = look_at_thread(fixture.pid, LOOK_ON_FUTEX,
				    writer ? LOOK_LOCK_RWLOCK : LOOK_LOCK_MUTEX);
		assert_int_equal(on.peer_pid, scene->holder);
		assert_string_equal(on.peer_comm, "test-bpf-look_l");
	}
}

static void wait_for_itself(void *unused)
{
	make_mutex(PLAIN);
	pthread_mutex_lock(&mutex);
	pthread_mutex_lock(&mutex);
}

static void a_thread_that_locks_twice(void **state)
{
	struct look_on on;

	start(wait_for_itself, NULL);
	on = look_at_thread(fixture.pid, LOOK_ON_FUTEX, LOOK_LOCK_MUTEX);
	assert_int_equal(on.peer_pid, fixture.pid);
}

/* The last pass of a session reads the holder again, of a thread that has not run. */
static void a_holder_is_read_again(void **state)
{
	struct seen_look l;

	start(wait_for_itself, NULL);
	look_at_thread(fixture.pid, LOOK_ON_FUTEX, LOOK_LOCK_MUTEX);
	read_looks(fixture.h, fixture.pid, &l);
	assert_true(l.record.head.flags & LOOK_AS_BEFORE);
	fixture.h->control->look_mode = LOOK_HELD_AGAIN;
	read_looks(fixture.h, fixture.pid, &l);
	assert_false(l.record.head.flags & LOOK_AS_BEFORE);
	assert_int_equal(l.record.on.peer_pid, fixture.pid);
}

static void wait_on_condition(void *unused)
{
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(&condition, &mutex);
}

static void wait_for_semaphore(void *unused)
{
	for (;;)
		sem_wait(&held);
}

static void *read_lock(void *unused)
{
	pthread_rwlock_rdlock(&rwlock);
	sem_post(&held);
	for (;;)
		pause();
	return NULL;
}

static void wait_for_reader(void *unused)
{
	pthread_t thread;

	pthread_create(&thread, NULL, read_lock, NULL);
	sem_wait(&held);
	pthread_rwlock_wrlock(&rwlock);
}

static void no_holder_where_none_is_known(void **state)
{
	struct look_on on;

	start(wait_on_condition, NULL);
	on = look_at_thread(fixture.pid, LOOK_ON_FUTEX, LOOK_LOCK_EVENT);
	assert_int_equal(on.peer_pid, 0);
	start(wait_for_semaphore, NULL);
	on = look_at_thread(fixture.pid, LOOK_ON_FUTEX, LOOK_LOCK_EVENT);
	assert_int_equal(on.peer_pid, 0);
	start(wait_for_reader, NULL);
	on = look_at_thread(fixture.pid, LOOK_ON_FUTEX, LOOK_LOCK_UNKNOWN);
	assert_int_equal(on.peer_pid, 0);
}

/* The words that a process writes, and the values that it passes to futex(2). */
static const struct forgery {
	uint32_t words[8];
	uint32_t operation, expected;
	uint8_t lock;
} forgeries[] = {
	/* A mutex of process 1, of a number that no pid has, and of one beyond the tree of pids. */
	{ { 2, 0, 1, 1 }, FUTEX_WAIT, 2, LOOK_LOCK_MUTEX },
	{ { 2, 0, 4194303, 1 }, FUTEX_WAIT, 2, LOOK_LOCK_MUTEX },
	{ { 2, 0, 0x3fffffff, 1 }, FUTEX_WAIT, 2, LOOK_LOCK_MUTEX },
	/* No mutex: without users, of a kind that none is of. */
	{ { 2, 0, 0, 0 }, FUTEX_WAIT, 2, LOOK_LOCK_MUTEX },
	{ { 2, 0, 0, 1, 0xffff }, FUTEX_WAIT, 2, LOOK_LOCK_MUTEX },
	/* A mutex of musl, which has no number: thread 16 does not hold it. */
	{ { 0x80000010 }, FUTEX_WAIT, 0x80000010, LOOK_LOCK_MUTEX },
	/* A counter at which a condition variable waits. */
	{ { 2, 0, 1, 1 }, FUTEX_WAIT_BITSET, 2, LOOK_LOCK_UNKNOWN },
	/* A robust one and a rwlock of process 1. */
	{ { 0x80000001 }, FUTEX_WAIT, 0x80000001, LOOK_LOCK_EVENT },
	{ { 3, 0, 0, 1, 1 }, FUTEX_WAIT_BITSET, 3, LOOK_LOCK_EVENT },
};

static void wait_forged(void *context)
{
	const struct forgery *f = context;

	memcpy(scene->words, f->words, sizeof(scene->words));
	/* Its own number stands where no mutex has it. */
	if (!f->words[2] && f->expected == 2)
		scene->words[2] = (uint32_t)getpid();
	for (;;)
		if (syscall(SYS_futex, scene->words, f->operation, f->expected, NULL, NULL, ~0u) <
			    0 &&
		    errno == EAGAIN)
			_exit(4);
}

static void a_process_lies_about_itself_only(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(forgeries); i++) {
		struct look_on on;

		start(wait_forged, (void *)&forgeries[i]);
		on = look_at_thread(fixture.pid, LOOK_ON_FUTEX, forgeries[i].lock);
		assert_int_equal(on.peer_pid, 0);
		assert_int_equal(on.peer_comm[0], 0);
	}
}

/* As a condition variable of musl does: the word is in the waiting function's own frame. */
static void wait_on_own_stack(void *unused)
{
	volatile uint32_t barrier = LOCK_BARRIER;

	for (;;)
		if (syscall(SYS_futex, &barrier, FUTEX_WAIT_PRIVATE, LOCK_BARRIER, NULL) < 0 &&
		    errno == EAGAIN)
			_exit(4);
}

static void a_word_on_the_own_stack_is_no_lock(void **state)
{
	struct look_on on;

	start(wait_on_own_stack, NULL);
	on = look_at_thread(fixture.pid, LOOK_ON_FUTEX, LOOK_LOCK_EVENT);
	assert_int_equal(on.peer_pid, 0);
}

/* Waits in a pid namespace of its own, as the process of a container. */
static void wait_in_namespace(void *unused)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID) < 0)
		_exit(3);
	scene->kind = PLAIN;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		wait_for_lock(NULL);
	}
	scene->inner = pid;
	for (;;)
		pause();
}

/* Returns the thread of a process that is not its main one. */
static pid_t find_other_thread(pid_t pid)
{
	char path[64];
	struct dirent *entry;
	pid_t other = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != pid)
			other = atoi(entry->d_name);
	closedir(dir);
	return other;
}

static void numbers_of_a_namespace(void **state)
{
	struct look_on on;

	scene->inner = 0;
	start(wait_in_namespace, NULL);
	for (int i = 0; i < 500 && !scene->inner; i++)
		harness_sleep_ms(10);
	assert_true(scene->inner > 0);
	on = look_at_thread(scene->inner, LOOK_ON_FUTEX, LOOK_LOCK_MUTEX);
	assert_int_equal(on.peer_pid, find_other_thread(scene->inner));
	assert_int_not_equal(on.peer_pid, scene->holder);
}

static void wait_for_file(void *context)
{
	const char *path = context;
	int fd = open(path, O_RDWR);
	struct flock lock = { .l_type = F_WRLCK };

	for (;;)
		if (scene->kind == PLAIN)
			flock(fd, LOCK_EX);
		else
			fcntl(fd, F_SETLKW, &lock);
}

static void the_process_that_locks_a_file(void **state)
{
	char path[] = "/tmp/look_lock.XXXXXX";
	int fd = mkstemp(path);
	struct flock lock = { .l_type = F_WRLCK };

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
	for (int i = 0; i < 2; i++) {
		struct look_on on;

		scene->kind = (enum held_lock)i;
		start(wait_for_file, path);
		on = look_at_thread(fixture.pid, LOOK_ON_FILE, LOOK_LOCK_FILE);
		assert_int_equal(on.peer_pid, getpid());
		assert_string_equal(on.peer_comm, "test-bpf-look_l");
	}
	unlink(path);
	close(fd);
}

static void wait_for_own_range(void *context)
{
	int fd = open((const char *)context, O_RDWR);
	struct flock lock = { .l_type = F_WRLCK, .l_len = 10 };

	for (;;)
		fcntl(fd, F_SETLKW, &lock);
}

/*
 * The test holds one range and another process the other one; each has a waiter. Which of them a
 * thread waits for is not known.
 */
static void no_process_of_several_ranges(void **state)
{
	char path[] = "/tmp/look_lock.XXXXXX";
	int fd = mkstemp(path);
	struct flock own = { .l_type = F_WRLCK, .l_len = 10 };
	struct flock other = { .l_type = F_WRLCK, .l_start = 10, .l_len = 10 };
	struct look_on on;
	pid_t holder, waiter;

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETLK, &own), 0);
	scene->inner = 0;
	holder = fork();
	if (!holder) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		scene->inner = fcntl(fd, F_SETLK, &other) == 0 ? 1 : -1;
		for (;;)
			pause();
	}
	while (!*(volatile pid_t *)&scene->inner)
		harness_sleep_ms(1);
	assert_int_equal(scene->inner, 1);
	waiter = fork();
	if (!waiter) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			fcntl(fd, F_SETLKW, &other);
	}
	harness_sleep_ms(100);
	scene->kind = RECURSIVE;
	start(wait_for_own_range, path);
	on = look_at_thread(fixture.pid, LOOK_ON_FILE, LOOK_LOCK_FILE);
	assert_int_equal(on.peer_pid, 0);
	kill(waiter, SIGKILL);
	kill(holder, SIGKILL);
	waitpid(waiter, NULL, 0);
	waitpid(holder, NULL, 0);
	unlink(path);
	close(fd);
}

/* Each fork copies the page tables of much memory, with the lock of the address space held. */
static void *fork_often(void *unused)
{
	char *big = mmap(NULL, BIG_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (big == MAP_FAILED)
		_exit(3);
	madvise(big, BIG_BYTES, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < BIG_BYTES; i += 4096)
		big[i] = 1;
	scene->holder = (pid_t)syscall(SYS_gettid);
	for (;;) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return NULL;
}

static void map_often(void *unused)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fork_often, NULL);
	for (;;) {
		char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		munmap(page, 4096);
	}
}

static void the_lock_of_an_address_space(void **state)
{
	struct seen_look l;
	bool seen = false;

	scene->holder = 0;
	start(map_often, NULL);
	for (int i = 0; i < 1000 && !seen; i++) {
		fixture.h->control->look_epoch++;
		read_looks(fixture.h, fixture.pid, &l);
		seen = l.told && l.record.on.kind == LOOK_ON_MMAP_LOCK && l.record.on.peer_pid;
		harness_sleep_ms(3);
	}
	assert_true(seen);
	assert_int_equal(l.record.on.peer_pid, scene->holder);
	assert_int_equal(l.record.on.state, LOOK_LOCK_RWLOCK);
}

static void sleep_in_kernel(void *unused)
{
	/* The parent of vfork(2) sleeps without a signal's effect until the child has ended. */
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

static void *map_beside(void *unused)
{
	map_often(NULL);
	return NULL;
}

/*
 * A thread in an uninterruptible sleep for something else, beside threads that hold the lock and
 * wait for it: vfork(2) of a process whose address space others change all the time.
 */
static void sleep_beside(void *unused)
{
	pthread_t thread;

	pthread_create(&thread, NULL, map_beside, NULL);
	while (!*(volatile pid_t *)&scene->holder)
		;
	sleep_in_kernel(NULL);
}

static void only_waiters_of_a_kernel_lock(void **state)
{
	unsigned int records = 0;
	struct seen_look l;

	scene->holder = 0;
	start(sleep_beside, NULL);
	for (int i = 0; i < 3000 && records < 100; i++) {
		fixture.h->control->look_epoch++;
		read_looks(fixture.h, fixture.pid, &l);
		assert_int_not_equal(l.record.on.kind, LOOK_ON_MMAP_LOCK);
		records += l.told;
		harness_sleep_ms(3);
	}
	assert_int_equal(records, 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_thread_that_holds_it),
		cmocka_unit_test(a_thread_that_locks_twice),
		cmocka_unit_test(a_holder_is_read_again),
		cmocka_unit_test(no_holder_where_none_is_known),
		cmocka_unit_test(a_process_lies_about_itself_only),
		cmocka_unit_test(a_word_on_the_own_stack_is_no_lock),
		cmocka_unit_test(numbers_of_a_namespace),
		cmocka_unit_test(the_process_that_locks_a_file),
		cmocka_unit_test(no_process_of_several_ranges),
		cmocka_unit_test(the_lock_of_an_address_space),
		cmocka_unit_test(only_waiters_of_a_kernel_lock),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, begin_all, end_all);
}
