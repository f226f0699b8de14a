/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sorts.c: a callback of libc's qsort(3).
 */
#include "../../workloads/workload.h"

#define GOODS 500

static int compare(const void *a, const void *b)
{
	for (unsigned int i = 0; i < 100; i++)
		KEEP_FRAME();
	return *(const int *)a - *(const int *)b;
}

NAMED void sorts(void)
{
	int goods[GOODS];

	for (int i = 0; i < GOODS; i++)
		goods[i] = (i * 37) % GOODS;
	qsort(goods, GOODS, sizeof(*goods), compare);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "sorts SECONDS");

	while (workload_now_ns() < deadline)
		sorts();
	return 0;
}
