/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timed_waits SECONDS FILE [SCRATCH]: threads that each wait for one kind of thing, by the kind's
 * name: "w-sleep", "w-lock", ... Into FILE, which should be in memory, each thread writes the
 * moments (ns of CLOCK_MONOTONIC) between which it was blocked, through a mapping, so that it waits
 * for nothing else: a struct track for each. A wait ends when the thread is runnable again: CPU
 * time and time in the queue are subtracted. SCRATCH is a file on a disk that "w-fsync" writes and
 * "w-fault" maps. "mayfly" threads are born and end all the time.
 */
#include "workload.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WAIT_MS 30
#define WORK_NS 2000000ull

#define TRIES	      20
#define APART_NS      20000u
#define WAITS_MAX     4096
#define CONVOY	      4
#define STARVED	      3
#define SCRATCH_BYTES (16u << 20)

/* What a thread has waited, in the order of time; the end is 0 while it waits. */
struct track {
	char name[16];
	uint64_t count;
	uint64_t waits[WAITS_MAX][2];
};

static struct track *tracks;
static unsigned int begun; /* tracks */
static int scratch_fd = -1;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t convoy = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_came = PTHREAD_COND_INITIALIZER;
static unsigned int jobs;
static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER; /* main has it all the time */
static int pipe_fds[2], socket_fds[2], read_fds[2], idle_fds[2];
static uint64_t deadline_ns;

static void nap_ms(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000l }, NULL);
}

static void work(void)
{
	uint64_t until_ns = workload_now_ns() + WORK_NS;

	while (workload_now_ns() < until_ns)
		;
}

/* What the thread has had of CPUs and queues for them. */
static uint64_t served_ns(int schedstat)
{
	struct timespec ran;
	char text[96];
	unsigned long long delay;
	ssize_t n = pread(schedstat, text, sizeof(text) - 1, 0);

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
	text[n > 0 ? n : 0] = 0;
	if (sscanf(text, "%*u %llu", &delay) != 1)
		exit(1);
	return (uint64_t)ran.tv_sec * 1000000000ull + (uint64_t)ran.tv_nsec + delay;
}

/* A moment, and the thread's CPU time until then. */
struct moment {
	uint64_t ns, served_ns, apart_ns;
};

/*
 * A thread is put off its CPU where it leaves a system call, and then the two were not of one
 * moment: the closest of some readings is taken.
 */
static struct moment take_moment(int schedstat)
{
	struct moment best = { .apart_ns = UINT64_MAX };

	for (int i = 0; i < TRIES && best.apart_ns > APART_NS; i++) {
		struct moment m = { .ns = workload_now_ns(), .served_ns = served_ns(schedstat) };

		m.apart_ns = workload_now_ns() - m.ns;
		if (m.apart_ns < best.apart_ns)
			best = m;
	}
	return best;
}

/* Waits once, and writes down between which moments. */
static void wait_once(struct track *t, int schedstat, void (*wait)(void))
{
	struct moment begin = take_moment(schedstat), end;
	uint64_t at = t->count;

	if (at == WAITS_MAX)
		exit(1);
	t->waits[at][0] = begin.ns;
	__atomic_store_n(&t->count, at + 1, __ATOMIC_RELEASE);
	wait();
	end = take_moment(schedstat);
	end.ns -= end.served_ns - begin.served_ns;
	t->waits[at][1] = end.ns > begin.ns ? end.ns : begin.ns + 1;
}

static void wait_sleep(void)
{
	nap_ms(WAIT_MS);
}

static void wait_lock(void)
{
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
}

static void wait_pipe(void)
{
	char byte;

	if (read(pipe_fds[0], &byte, 1) != 1)
		exit(1);
}

static void wait_socket(void)
{
	char byte;

	if (recv(socket_fds[0], &byte, 1, 0) != 1)
		exit(1);
}

static void wait_read(void)
{
	char byte;

	if (read(read_fds[0], &byte, 1) != 1)
		exit(1);
}

static void wait_idle(void)
{
	struct pollfd fd = { .fd = idle_fds[0], .events = POLLIN };

	poll(&fd, 1, WAIT_MS);
}

static void wait_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		nap_ms(WAIT_MS);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* Each thread that wants the lock holds it for a while. */
static void wait_convoy(void)
{
	pthread_mutex_lock(&convoy);
}

static void leave_convoy(void)
{
	nap_ms(5);
	pthread_mutex_unlock(&convoy);
}

/* A job comes each time that the slow task is through. */
static void wait_starved(void)
{
	pthread_mutex_lock(&jobs_lock);
	while (!jobs)
		pthread_cond_wait(&job_came, &jobs_lock);
	jobs--;
	pthread_mutex_unlock(&jobs_lock);
}

static void rest(void)
{
	nap_ms(5);
}

static void wait_fsync(void)
{
	static unsigned int turn;

	if (pwrite(scratch_fd, &turn, sizeof(turn), 4096 * (turn % 16)) < 0 ||
	    fdatasync(scratch_fd) < 0)
		exit(1);
	turn++;
}

/* A page of the file that is not in memory. */
static void wait_fault(void)
{
	static unsigned int turn;
	volatile char *page;
	long at = (1 << 20) + 131072l * (turn++ % 100);

	posix_fadvise(scratch_fd, 1 << 20, 0, POSIX_FADV_DONTNEED);
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, scratch_fd, at);
	if (page == MAP_FAILED)
		exit(1);
	(void)*page;
	munmap((void *)(uintptr_t)page, 4096);
}

static void wait_open(void)
{
	pthread_mutex_lock(&never);
}

static const struct waiter {
	const char *kind;
	void (*wait)(void);
	void (*after)(void);
	bool scratch;
	unsigned int threads;
} waiters[] = {
	{ "sleep", wait_sleep, NULL, false, 1 },
	{ "lock", wait_lock, NULL, false, 1 },
	{ "pipe", wait_pipe, NULL, false, 1 },
	{ "socket", wait_socket, NULL, false, 1 },
	{ "read", wait_read, NULL, false, 1 },
	{ "idle", wait_idle, NULL, false, 1 },
	{ "child", wait_child, NULL, false, 1 },
	{ "open", wait_open, NULL, false, 1 },
	{ "convoy", wait_convoy, leave_convoy, false, CONVOY },
	{ "starved", wait_starved, NULL, false, STARVED },
	{ "fsync", wait_fsync, rest, true, 1 },
	{ "fault", wait_fault, rest, true, 1 },
};

static void *run_waiter(void *context)
{
	const struct waiter *w = context;
	struct track *t = &tracks[__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED)];
	int schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

	snprintf(t->name, sizeof(t->name), "w-%s", w->kind);
	pthread_setname_np(pthread_self(), t->name);
	while (workload_now_ns() < deadline_ns) {
		wait_once(t, schedstat, w->wait);
		if (w->after)
			w->after();
		else
			work();
	}
	return NULL;
}

/* The slow task, for which the starved wait. */
static void *run_slow(void *context)
{
	pthread_setname_np(pthread_self(), "w-slow");
	while (workload_now_ns() < deadline_ns) {
		nap_ms(2 * WAIT_MS);
		pthread_mutex_lock(&jobs_lock);
		jobs++;
		pthread_cond_signal(&job_came);
		pthread_mutex_unlock(&jobs_lock);
	}
	return NULL;
}

/* Holds the lock, and feeds the readers, in turns of known length. */
static void *run_feeder(void *context)
{
	pthread_setname_np(pthread_self(), "w-feeder");
	while (workload_now_ns() < deadline_ns) {
		pthread_mutex_lock(&held);
		nap_ms(WAIT_MS);
		pthread_mutex_unlock(&held);
		if (write(pipe_fds[1], "", 1) != 1 || write(socket_fds[1], "", 1) != 1 ||
		    write(read_fds[1], "", 1) != 1)
			exit(1);
		nap_ms(5);
	}
	return NULL;
}

static void *run_mayfly(void *context)
{
	pthread_setname_np(pthread_self(), "mayfly");
	nap_ms(WAIT_MS);
	return NULL;
}

static void start(void *(*run)(void *context), const void *context)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, (void *)(uintptr_t)context) != 0)
		exit(1);
	pthread_detach(thread);
}

/* Maps the tracks into FILE, and makes the scratch file. Returns false on failure. */
static bool make_files(int argc, char **argv)
{
	static char zeros[1 << 16];
	int fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	size_t bytes = 32 * sizeof(*tracks);

	if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes))
		return false;
	tracks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	close(fd);
	if (tracks == MAP_FAILED)
		return false;
	if (argc == 3)
		return true;
	scratch_fd = open(argv[3], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (scratch_fd < 0)
		return false;
	for (unsigned int i = 0; i < SCRATCH_BYTES / sizeof(zeros); i++)
		if (pwrite(scratch_fd, zeros, sizeof(zeros), (off_t)(i * sizeof(zeros))) < 0)
			return false;
	return fsync(scratch_fd) == 0 && posix_fadvise(scratch_fd, 0, 0, POSIX_FADV_RANDOM) == 0;
}

int main(int argc, char **argv)
{
	if (argc != 3 && argc != 4)
		return 2;
	deadline_ns = workload_deadline(argc, argv, "timed_waits SECONDS FILE [SCRATCH]");
	if (!make_files(argc, argv) || pipe(pipe_fds) < 0 || pipe(idle_fds) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, socket_fds) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, read_fds) < 0)
		return 1;
	pthread_mutex_lock(&never);
	start(run_feeder, NULL);
	start(run_slow, NULL);
	for (size_t i = 0; i < sizeof(waiters) / sizeof(waiters[0]); i++)
		for (unsigned int k = 0; k < waiters[i].threads; k++)
			if (!waiters[i].scratch || scratch_fd >= 0)
				start(run_waiter, &waiters[i]);
	while (workload_now_ns() < deadline_ns) {
		start(run_mayfly, NULL);
		nap_ms(100);
	}
	return 0;
}
