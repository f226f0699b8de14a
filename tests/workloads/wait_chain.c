/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_chain SECONDS FILE END [SCRATCH]: threads that wait for each other in a chain, in rounds of
 * known times: "api-7" wants the lock of an index, which "index-3" has, and it wants that of a log,
 * which "writer-1" has meanwhile; END is the writer's activity with it, or the thread that is
 * waited for instead: sleep the writer sleeps run it runs disk it writes SCRATCH and syncs pipe it
 * reads from a pipe what "feeder-2" writes after a while socket it asks another process, "catalog",
 * over a unix socket, which answers after a while child it waits for a child, "sorter", which runs
 * for a while cycle it wants the lock of the index in turn, until its time is up: a deadlock FILE
 * gets a line for each wait: name, tid, lock or what else, begin and end in ns of CLOCK_MONOTONIC.
 */
#include "workload.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Looks come every 50 ms: a round that is no multiple of that is met everywhere, and most of it is
 * work. */
#define ROUND_NS      110000000ull
#define DISK_ROUND_NS 200000000ull
#define WORK_NS	      80000000ull
#define APART_NS      4000000ull /* from one thread's turn to the next one's */
#define BLOCK	      65536

static FILE *lines;
static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t begin_ns, deadline_ns, round_ns = ROUND_NS;
static int pipe_fds[2], ask_fds[2], scratch;
static void (*work)(void);

static void note(const char *what, uint64_t from_ns)
{
	char name[16];

	prctl(PR_GET_NAME, name);
	fprintf(lines, "%s %ld %s %llu %llu\n", name, syscall(SYS_gettid), what,
		(unsigned long long)from_ns, (unsigned long long)workload_now_ns());
}

static void rest_until(uint64_t ns)
{
	uint64_t now_ns = workload_now_ns();

	if (ns > now_ns)
		workload_rest(ns - now_ns);
}

static void run_for(uint64_t ns)
{
	uint64_t until_ns = workload_now_ns() + ns;

	while (workload_now_ns() < until_ns)
		;
}

NAMED static void sleep_on_it(void)
{
	workload_rest(WORK_NS);
	KEEP_FRAME();
}

NAMED static void compute_sums(void)
{
	run_for(WORK_NS);
	KEEP_FRAME();
}

NAMED static void sync_log(void)
{
	static char block[BLOCK];

	if (pwrite(scratch, block, sizeof(block), 0) != sizeof(block) || fdatasync(scratch) < 0)
		_exit(3);
	KEEP_FRAME();
}

NAMED static void read_feed(void)
{
	char byte;

	if (read(pipe_fds[0], &byte, 1) != 1)
		_exit(3);
	KEEP_FRAME();
}

NAMED static void ask_catalog(void)
{
	char byte;

	if (write(ask_fds[0], "", 1) != 1 || recv(ask_fds[0], &byte, 1, 0) != 1)
		_exit(3);
	KEEP_FRAME();
}

NAMED static void sort_in_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NAME, "sorter");
		run_for(WORK_NS);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	KEEP_FRAME();
}

NAMED static void want_index(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += WORK_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_mutex_timedlock(&index_lock, &until) == 0)
		pthread_mutex_unlock(&index_lock);
	KEEP_FRAME();
}

/* Holds the log's lock in each round, and works with it. */
NAMED static void *write_log(void *unused)
{
	uint64_t from_ns;

	pthread_setname_np(pthread_self(), "writer-1");
	for (uint64_t ns = begin_ns; ns < deadline_ns; ns += round_ns) {
		rest_until(ns);
		pthread_mutex_lock(&log_lock);
		/* Of a deadlock it wants what index-3 has by then. */
		if (work == want_index)
			rest_until(ns + 3 * APART_NS);
		from_ns = workload_now_ns();
		work();
		note("work", from_ns);
		pthread_mutex_unlock(&log_lock);
	}
	return NULL;
}

NAMED static void *update_index(void *unused)
{
	uint64_t from_ns;

	pthread_setname_np(pthread_self(), "index-3");
	for (uint64_t ns = begin_ns + APART_NS; ns < deadline_ns; ns += round_ns) {
		rest_until(ns);
		pthread_mutex_lock(&index_lock);
		from_ns = workload_now_ns();
		pthread_mutex_lock(&log_lock);
		note("log", from_ns);
		pthread_mutex_unlock(&log_lock);
		pthread_mutex_unlock(&index_lock);
	}
	return NULL;
}

NAMED static void *answer_requests(void *unused)
{
	uint64_t from_ns;

	pthread_setname_np(pthread_self(), "api-7");
	for (uint64_t ns = begin_ns + 2 * APART_NS; ns < deadline_ns; ns += round_ns) {
		rest_until(ns);
		from_ns = workload_now_ns();
		pthread_mutex_lock(&index_lock);
		note("index", from_ns);
		pthread_mutex_unlock(&index_lock);
	}
	return NULL;
}

NAMED static void *feed(void *unused)
{
	pthread_setname_np(pthread_self(), "feeder-2");
	for (uint64_t ns = begin_ns; ns < deadline_ns; ns += round_ns) {
		rest_until(ns);
		run_for(WORK_NS);
		if (write(pipe_fds[1], "", 1) != 1)
			_exit(3);
	}
	return NULL;
}

static void serve_catalog(void)
{
	char byte;

	prctl(PR_SET_NAME, "catalog");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ask_fds[1], &byte, 1) == 1) {
		workload_rest(WORK_NS);
		if (write(ask_fds[1], "", 1) != 1)
			_exit(3);
	}
	_exit(0);
}

static const struct {
	const char *end;
	void (*work)(void);
} ends[] = {
	{ "sleep", sleep_on_it }, { "run", compute_sums },   { "disk", sync_log },
	{ "pipe", read_feed },	  { "socket", ask_catalog }, { "child", sort_in_child },
	{ "cycle", want_index },
};

static void start(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL) != 0)
		_exit(3);
}

int main(int argc, char **argv)
{
	static const char usage[] = "wait_chain SECONDS FILE END [SCRATCH]";

	deadline_ns = workload_deadline(argc, argv, usage);
	lines = argc > 3 ? fopen(argv[2], "we") : NULL;
	for (size_t i = 0; lines && i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!strcmp(argv[3], ends[i].end))
			work = ends[i].work;
	scratch = argc > 4 ? open(argv[4], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (!work || pipe(pipe_fds) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ask_fds) < 0)
		return 2;
	setvbuf(lines, NULL, _IOLBF, 0);
	if (work == sync_log)
		round_ns = DISK_ROUND_NS;
	if (work == ask_catalog && fork() == 0)
		serve_catalog();
	begin_ns = workload_now_ns() + ROUND_NS;
	start(write_log);
	start(update_index);
	start(answer_requests);
	if (work == read_feed)
		start(feed);
	rest_until(deadline_ns);
	return 0;
}
