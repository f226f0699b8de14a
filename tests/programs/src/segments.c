/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * segments.c: functions in sections of their own, which the linker puts into executable segments of
 * their own.
 */
#include "../../workloads/workload.h"

#define IN(name) __attribute__((section(name)))

IN("hot_c") NAMED void leaf(void)
{
	for (unsigned int i = 0; i < WORKLOAD_TURNS; i++)
		KEEP_FRAME();
}

IN("hot_b") NAMED void middle(unsigned int n)
{
	volatile char room[200];

	room[n % sizeof(room)] = 1;
	leaf();
	KEEP_FRAME();
}

IN("hot_a") NAMED void works(unsigned int n)
{
	leaf();
	middle(n);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "segments SECONDS");

	for (unsigned int n = 0; workload_now_ns() < deadline; n++)
		works(n);
	return 0;
}
