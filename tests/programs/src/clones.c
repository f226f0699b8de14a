/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clones.c: three threads made by clone(2) with stacks of the program's own, without libc's
 * threads.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mman.h>

#include "../../workloads/workload.h"

#define THREADS	    3
#define STACK_BYTES (256 * 1024)

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

static int run(void *unused)
{
	works();
	return 0;
}

int main(int argc, char **argv)
{
	deadline = workload_deadline(argc, argv, "clones SECONDS");
	for (int i = 0; i < THREADS; i++) {
		char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (stack == MAP_FAILED)
			return 1;
		if (clone(run, stack + STACK_BYTES,
			  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD,
			  NULL) < 0)
			return 1;
	}
	works();
	return 0;
}
