/* SPDX-License-Identifier: BSD-2-Clause */
/* threads.c: the number of threads in the second argument, all of them at work. */
#include <pthread.h>

#include "../../workloads/workload.h"

#define THREADS_MAX 1000u

static uint64_t deadline;

NAMED void leaf(void)
{
	for (unsigned int i = 0; i < WORKLOAD_TURNS; i++)
		KEEP_FRAME();
}

NAMED void works(void)
{
	while (workload_now_ns() < deadline) {
		leaf();
		KEEP_FRAME();
	}
}

static void *run(void *unused)
{
	works();
	return unused;
}

int main(int argc, char **argv)
{
	uint32_t threads = workload_number(argc, argv, 2, 2, 1, THREADS_MAX);
	pthread_t thread;

	deadline = workload_deadline(argc, argv, "threads SECONDS THREADS");
	for (uint32_t i = 1; i < threads; i++)
		if (pthread_create(&thread, NULL, run, NULL))
			return 1;
	works();
	return 0;
}
