/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timed_waits SECONDS FILE: threads that each wait for one kind of thing, by the kind's name:
 * "w-sleep", "w-lock", ... It writes a line into FILE for every wait: kind, tid, begin and end in
 * ns of CLOCK_MONOTONIC; the end is 0 when the wait begins, and what is not over has no second
 * line. "mayfly" threads are born and end all the time.
 */
#include "workload.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WAIT_MS 30
#define WORK_NS 2000000ull

static FILE *lines;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
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

static void note(const char *kind, uint64_t begin_ns, uint64_t end_ns)
{
	fprintf(lines, "%s %ld %llu %llu\n", kind, syscall(SYS_gettid),
		(unsigned long long)begin_ns, (unsigned long long)end_ns);
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

static void wait_open(void)
{
	pthread_mutex_lock(&never);
}

static const struct waiter {
	const char *kind;
	void (*wait)(void);
} waiters[] = {
	{ "sleep", wait_sleep },   { "lock", wait_lock }, { "pipe", wait_pipe },
	{ "socket", wait_socket }, { "read", wait_read }, { "idle", wait_idle },
	{ "child", wait_child },   { "open", wait_open },
};

static void *run_waiter(void *context)
{
	const struct waiter *w = context;
	char name[16];
	uint64_t begin_ns;

	snprintf(name, sizeof(name), "w-%s", w->kind);
	pthread_setname_np(pthread_self(), name);
	while (workload_now_ns() < deadline_ns) {
		begin_ns = workload_now_ns();
		note(w->kind, begin_ns, 0);
		w->wait();
		note(w->kind, begin_ns, workload_now_ns());
		work();
	}
	return NULL;
}

/* Holds the lock, and feeds those who read, in turns of known length. */
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

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	deadline_ns = workload_deadline(argc, argv, "timed_waits SECONDS FILE");
	lines = fopen(argv[2], "we");
	if (!lines || pipe(pipe_fds) < 0 || pipe(idle_fds) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, socket_fds) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, read_fds) < 0)
		return 1;
	setlinebuf(lines);
	pthread_mutex_lock(&never);
	start(run_feeder, NULL);
	for (size_t i = 0; i < sizeof(waiters) / sizeof(waiters[0]); i++)
		start(run_waiter, &waiters[i]);
	while (workload_now_ns() < deadline_ns) {
		start(run_mayfly, NULL);
		nap_ms(100);
	}
	return 0;
}
