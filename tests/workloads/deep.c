/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * deep SECONDS [FRAMES]: descends FRAMES (default 40) calls of descend_one_level and spins in
 * spin_at_the_bottom: stacks of a known depth, beyond the kernel's 127 frames where asked.
 */
#include "workload.h"

#define FRAMES_MAX 1000u

static volatile uint64_t turns;

NAMED static void spin_at_the_bottom(uint64_t until_ns)
{
	while (workload_now_ns() < until_ns) {
		for (uint32_t i = 0; i < WORKLOAD_TURNS; i++)
			turns = turns + 1;
	}
}

NAMED static void descend_one_level(uint32_t left,
				    uint64_t until_ns) /* NOLINT(misc-no-recursion) */
{
	if (left)
		descend_one_level(left - 1, until_ns);
	else
		spin_at_the_bottom(until_ns);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	uint64_t deadline_ns;

	deadline_ns = workload_deadline(argc, argv, "deep SECONDS [FRAMES]");
	descend_one_level(workload_number(argc, argv, 2, 40, 1, FRAMES_MAX) - 1, deadline_ns);
	return 0;
}
