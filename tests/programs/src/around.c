/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * around.c: functions with frame pointers that call those of between.c, in main and in a thread;
 * with EXECS in children that live for 20 ms, each a program of its own.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../workloads/workload.h"

volatile uint64_t between_sum;
void between_top(void);

static uint64_t deadline;

__attribute__((noipa)) void around_inner(void)
{
	between_top();
	between_sum++;
}

__attribute__((noipa)) void around_outer(void)
{
	around_inner();
	between_sum++;
}

static void *works(void *context)
{
	while (workload_now_ns() < deadline)
		around_outer();
	return context;
}

/* Starts this program again and again, each time for 20 ms. */
static void starts_again(char *program)
{
	char *const words[] = { program, "1", NULL };

	while (workload_now_ns() < deadline) {
		if (fork() == 0)
			execv(program, words);
		wait(NULL);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;

	deadline = workload_deadline(argc, argv, "around SECONDS");
#ifdef EXECS
	if (deadline < workload_now_ns() + 1000000000ull)
		deadline = workload_now_ns() + 20000000;
	else
		starts_again(argv[0]);
#else
	(void)starts_again;
#endif
	if (pthread_create(&thread, NULL, works, NULL))
		return 1;
	works(NULL);
	pthread_join(thread, NULL);
	return 0;
}
