/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * churn SECONDS [A_SECOND [LIFE_MS]]: A_SECOND children a second, each of which spins LIFE_MS in
 * spin_short_life and is gone: processes that die before they can be identified.
 */
#include <signal.h>

#include "workload.h"

static volatile uint64_t turns;

NAMED static void spin_short_life(uint64_t until_ns)
{
	while (workload_now_ns() < until_ns) {
		for (uint32_t i = 0; i < WORKLOAD_TURNS; i++)
			turns = turns + 1;
	}
}

int main(int argc, char **argv)
{
	uint64_t deadline_ns;
	uint32_t a_second, life_ms, born = 0;

	deadline_ns = workload_deadline(argc, argv, "churn SECONDS [A_SECOND [LIFE_MS]]");
	a_second = workload_number(argc, argv, 2, 50, 1, 2000);
	life_ms = workload_number(argc, argv, 3, 5, 0, 1000);
	signal(SIGCHLD, SIG_IGN); /* the kernel reaps */
	while (workload_now_ns() < deadline_ns) {
		pid_t pid = fork();

		if (pid == 0) {
			spin_short_life(workload_now_ns() + life_ms * 1000000ull);
			_exit(0);
		}
		born += pid > 0;
		workload_rest(1000000000ull / a_second);
	}
	printf("%u\n", born);
	return 0;
}
