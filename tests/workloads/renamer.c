/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * renamer SECONDS NAME [DELAY_SECONDS]: sleeps, takes NAME by prctl(PR_SET_NAME), and spins in
 * spin_under_new_name.
 */
#include <sys/prctl.h>

#include "workload.h"

static volatile uint64_t turns;

NAMED static void spin_under_new_name(uint64_t until_ns)
{
	while (workload_now_ns() < until_ns) {
		for (uint32_t i = 0; i < WORKLOAD_TURNS; i++)
			turns = turns + 1;
	}
}

int main(int argc, char **argv)
{
	uint64_t deadline_ns;
	uint32_t delay;

	deadline_ns = workload_deadline(argc, argv, "renamer SECONDS NAME [DELAY_SECONDS]");
	delay = workload_number(argc, argv, 3, 1, 0, WORKLOAD_SECONDS_MAX);
	if (argc < 3)
		return 2;
	workload_rest(delay * 1000000000ull);
	if (prctl(PR_SET_NAME, argv[2], 0, 0, 0) < 0)
		return 1;
	puts("renamed");
	fflush(stdout);
	spin_under_new_name(deadline_ns);
	return 0;
}
