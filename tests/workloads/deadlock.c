/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * deadlock SECONDS FILE: two threads take two locks in opposite order and wait for each other:
 * "transfer" in move_money, "audit" in check_books. Three threads "queued" wait behind them, and
 * one waits for a lock of FILE (flock), which another process may hold.
 */
#include "workload.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>

static pthread_mutex_t accounts_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t audit_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static int fd;

NAMED static void move_money(void)
{
	pthread_mutex_lock(&accounts_lock);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&audit_lock);
	KEEP_FRAME();
}

NAMED static void check_books(void)
{
	pthread_mutex_lock(&audit_lock);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&accounts_lock);
	KEEP_FRAME();
}

static void *transfer(void *unused)
{
	pthread_setname_np(pthread_self(), "transfer");
	move_money();
	return NULL;
}

static void *audit(void *unused)
{
	pthread_setname_np(pthread_self(), "audit");
	check_books();
	return NULL;
}

static void *queue(void *unused)
{
	pthread_setname_np(pthread_self(), "queued");
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&accounts_lock);
	return NULL;
}

NAMED static void *lock_file(void *unused)
{
	pthread_setname_np(pthread_self(), "locker");
	while (flock(fd, LOCK_EX) < 0)
		;
	KEEP_FRAME();
	return NULL;
}

int main(int argc, char **argv)
{
	uint32_t seconds = workload_number(argc, argv, 1, 10, 1, WORKLOAD_SECONDS_MAX);
	pthread_t thread;

	fd = argc > 2 ? open(argv[2], O_RDWR | O_CLOEXEC) : -1;
	pthread_barrier_init(&both, NULL, 5);
	pthread_create(&thread, NULL, transfer, NULL);
	pthread_create(&thread, NULL, audit, NULL);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, queue, NULL);
	if (fd >= 0)
		pthread_create(&thread, NULL, lock_file, NULL);
	sleep(seconds);
	return 0;
}
