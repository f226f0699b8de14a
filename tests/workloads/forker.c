/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forker SECONDS [CHILDREN [DELAY_SECONDS]]: forks CHILDREN children that never call execve, after
 * a delay; each spins in spin_in_child. The parent prints their pids and waits.
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "workload.h"

#define CHILDREN_MAX 256u

static volatile uint64_t turns;

NAMED static void spin_in_child(uint64_t until_ns)
{
	while (workload_now_ns() < until_ns) {
		for (uint32_t i = 0; i < WORKLOAD_TURNS; i++)
			turns = turns + 1;
	}
}

int main(int argc, char **argv)
{
	uint64_t deadline_ns;
	uint32_t children, delay;

	deadline_ns = workload_deadline(argc, argv, "forker SECONDS [CHILDREN [DELAY_SECONDS]]");
	children = workload_number(argc, argv, 2, 1, 1, CHILDREN_MAX);
	delay = workload_number(argc, argv, 3, 0, 0, WORKLOAD_SECONDS_MAX);
	workload_rest(delay * 1000000000ull);
	for (uint32_t i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0);
			spin_in_child(deadline_ns);
			_exit(0);
		}
		printf("%d\n", (int)pid);
	}
	fflush(stdout);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return 0;
}
