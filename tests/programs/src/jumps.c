/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jumps.c: longjmp(3) out of 20 frames, again and again.
 */
#include <setjmp.h>

#include "../../workloads/workload.h"

#define DEPTH 20

static jmp_buf back;

NAMED void leaf(void)
{
	for (unsigned int i = 0; i < WORKLOAD_TURNS; i++)
		KEEP_FRAME();
}

NAMED void goes_deeper(unsigned int depth)
{
	leaf();
	if (!depth)
		longjmp(back, 1);
	goes_deeper(depth - 1);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "jumps SECONDS");

	while (workload_now_ns() < deadline)
		if (!setjmp(back))
			goes_deeper(DEPTH);
	return 0;
}
