/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_holds SECONDS FILE: threads that wait for locks, each for known times. "writer-1" holds the
 * lock of an index for 60 ms at a time, in flush_index, while "reader-" threads want it; "queue-"
 * threads stand behind each other for a short one; "timed" waits for a word that is never written.
 * FILE gets a line for every wait, as it begins and as it ends: name, address of the lock, tid,
 * begin and end in ns of CLOCK_MONOTONIC; the end is 0 when the wait begins, and the begin of the
 * second line is the exact one, since it takes time to write the first.
 */
#include "workload.h"

#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#define HOLD_NS	   60000000ull
#define FREE_NS	   20000000ull
#define TURN_NS	   300000ull
#define TIMEOUT_NS 25000000l
#define READERS	   3
#define QUEUED	   4

static FILE *lines;
static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t nobody;
static uint64_t deadline_ns;

static void note(const char *name, const void *lock, uint64_t begin_ns, uint64_t end_ns)
{
	fprintf(lines, "%s %p %ld %llu %llu\n", name, lock, syscall(SYS_gettid),
		(unsigned long long)begin_ns, (unsigned long long)end_ns);
}

static void wait_for(const char *name, pthread_mutex_t *lock)
{
	uint64_t begin_ns;

	note(name, lock, workload_now_ns(), 0);
	begin_ns = workload_now_ns();
	pthread_mutex_lock(lock);
	note(name, lock, begin_ns, workload_now_ns());
}

NAMED static void flush_index(void)
{
	pthread_mutex_lock(&index_lock);
	workload_rest(HOLD_NS);
	pthread_mutex_unlock(&index_lock);
	KEEP_FRAME();
}

NAMED static void *write_index(void *unused)
{
	pthread_setname_np(pthread_self(), "writer-1");
	while (workload_now_ns() < deadline_ns) {
		flush_index();
		workload_rest(FREE_NS);
	}
	return NULL;
}

NAMED static void *read_index(void *unused)
{
	pthread_setname_np(pthread_self(), "reader-1");
	while (workload_now_ns() < deadline_ns) {
		wait_for("reader", &index_lock);
		pthread_mutex_unlock(&index_lock);
		workload_rest(FREE_NS / 4);
	}
	return NULL;
}

NAMED static void *stand_in_queue(void *unused)
{
	pthread_setname_np(pthread_self(), "queue-1");
	while (workload_now_ns() < deadline_ns) {
		wait_for("queue", &queue_lock);
		workload_rest(TURN_NS);
		pthread_mutex_unlock(&queue_lock);
	}
	return NULL;
}

NAMED static void *wait_in_vain(void *unused)
{
	const struct timespec timeout = { .tv_nsec = TIMEOUT_NS };

	pthread_setname_np(pthread_self(), "timed");
	while (workload_now_ns() < deadline_ns) {
		uint64_t begin_ns;

		note("timed", &nobody, workload_now_ns(), 0);
		begin_ns = workload_now_ns();
		syscall(SYS_futex, &nobody, FUTEX_WAIT, 0, &timeout, NULL, 0);
		note("timed", &nobody, begin_ns, workload_now_ns());
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const char usage[] = "lock_holds SECONDS FILE";
	pthread_t thread;

	deadline_ns = workload_deadline(argc, argv, usage);
	lines = argc > 2 ? fopen(argv[2], "we") : NULL;
	if (!lines)
		return 1;
	setvbuf(lines, NULL, _IOLBF, 0);
	pthread_create(&thread, NULL, write_index, NULL);
	for (int i = 0; i < READERS; i++)
		pthread_create(&thread, NULL, read_index, NULL);
	for (int i = 0; i < QUEUED; i++)
		pthread_create(&thread, NULL, stand_in_queue, NULL);
	pthread_create(&thread, NULL, wait_in_vain, NULL);
	workload_rest(deadline_ns - workload_now_ns());
	return 0;
}
