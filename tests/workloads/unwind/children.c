/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * children.c: work in children, one after the other: of vfork, which borrow the parent's memory and
 * stack; of clone, which borrow the memory and have a stack of their own; of fork.
 */
#include <sched.h>
#include <sys/wait.h>

#include "../workload.h"

#ifndef CHILD_NS
#define CHILD_NS 800000000ull
#endif
#define STACK_BYTES (64 * 1024)

static inline __attribute__((always_inline)) void spin(unsigned int turns)
{
	for (unsigned int i = 0; i < turns; i++)
		KEEP_FRAME();
}

/* The clock is looked at by them: what is spent in it would be another stack. */
NAMED void vfork_leaf(void)
{
	spin(100 * WORKLOAD_TURNS);
}

NAMED void clone_leaf(void)
{
	spin(100 * WORKLOAD_TURNS);
}

NAMED void fork_leaf(void)
{
	spin(100 * WORKLOAD_TURNS);
}

NAMED void vfork_child(uint64_t until)
{
	while (workload_now_ns() < until)
		vfork_leaf();
	_exit(0);
}

NAMED int clone_child(void *until)
{
	while (workload_now_ns() < *(uint64_t *)until)
		clone_leaf();
	return 0;
}

NAMED void fork_child(uint64_t until)
{
	while (workload_now_ns() < until)
		fork_leaf();
	_exit(0);
}

NAMED void runs_vfork(void)
{
	pid_t child = vfork();

	if (child == 0)
		vfork_child(workload_now_ns() + CHILD_NS);
	waitpid(child, NULL, 0);
}

NAMED void runs_clone(void)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	uint64_t until = workload_now_ns() + CHILD_NS;
	pid_t child = clone(clone_child, stack + sizeof(stack), CLONE_VM | SIGCHLD, &until);

	waitpid(child, NULL, 0);
}

NAMED void runs_fork(void)
{
	pid_t child = fork();

	if (child == 0)
		fork_child(workload_now_ns() + CHILD_NS);
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "children SECONDS");

	while (workload_now_ns() < deadline) {
		runs_vfork();
		runs_clone();
		runs_fork();
	}
	return 0;
}
