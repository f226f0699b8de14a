/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callers.c: a program as distributions build it, without frame pointers: its time goes by in a
 * comparison that libc's qsort calls, and in a thread 20 calls deep.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "workload.h"

static volatile uint64_t sink;

NAMED static void spin_in_compare(int n)
{
	for (int i = 0; i < n; i++)
		sink = sink * 31 + (uint64_t)i;
}

NAMED static int compare_orders(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	spin_in_compare(300);
	return (x > y) - (x < y) + (int)(sink & 0);
}

NAMED static void sort_orders(void)
{
	int orders[512];

	for (int i = 0; i < 512; i++)
		orders[i] = (int)((uint64_t)i * 7919u ^ sink);
	qsort(orders, 512, sizeof(*orders), compare_orders);
	sink += (uint64_t)orders[3];
}

NAMED static void descend(int n)
{
	if (n > 0)
		descend(n - 1);
	else
		spin_in_compare(100000);
	KEEP_FRAME();
}

static void *run_thread(void *unused)
{
	for (;;)
		descend(20);
	return unused;
}

int main(int argc, char **argv)
{
	uint64_t end_ns = workload_deadline(argc, argv, "callers SECONDS");
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_thread, NULL) != 0)
		return 1;
	while (workload_now_ns() < end_ns)
		sort_orders();
	return 0;
}
