/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bank FLAG: once the file exists, two threads take two locks in opposite orders, and six more wait
 * for the first.
 */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static pthread_mutex_t accounts_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t audit_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *flag;
static volatile long sum;

static void work(long n)
{
	for (long i = 0; i < n; i++)
		sum += i;
}

static NOINLINE void transfer(void)
{
	int bad = !access(flag, F_OK);

	pthread_mutex_lock(&accounts_lock);
	if (bad)
		usleep(20000);
	pthread_mutex_lock(&audit_lock);
	work(20000);
	pthread_mutex_unlock(&audit_lock);
	pthread_mutex_unlock(&accounts_lock);
}

static NOINLINE void report(void)
{
	if (!access(flag, F_OK)) {
		pthread_mutex_lock(&audit_lock);
		usleep(20000);
		pthread_mutex_lock(&accounts_lock);
		work(20000);
		pthread_mutex_unlock(&accounts_lock);
		pthread_mutex_unlock(&audit_lock);
	}
	work(20000);
}

static void *do_transfers(void *number)
{
	for (;;) {
		transfer();
		usleep(10000 + (intptr_t)number * 1000);
	}
	return NULL;
}

static void *do_reports(void *unused)
{
	for (;;) {
		report();
		usleep(10000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	flag = argv[argc - 1];
	for (intptr_t i = 0; i < 7; i++)
		pthread_create(&thread, NULL, do_transfers, (void *)i);
	pthread_create(&thread, NULL, do_reports, NULL);
	pause();
	return 0;
}
