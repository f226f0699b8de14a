/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * paths SECONDS [LEVELS]: counts, and walks down LEVELS (default 18) calls of turn_left and
 * turn_right by the bits of each number, to spin at the end of its path for a fraction of a
 * millisecond: nearly every sample meets a stack that no other one had.
 */
#include "workload.h"

#define LEVELS_MAX 30u

static volatile uint64_t turns;

NAMED static void turn_right(uint32_t left, uint64_t number);

NAMED static void spin_at_the_end(void)
{
	for (uint32_t i = 0; i < WORKLOAD_TURNS; i++)
		turns = turns + 1;
}

NAMED static void turn_left(uint32_t left, uint64_t number) /* NOLINT(misc-no-recursion) */
{
	if (!left)
		spin_at_the_end();
	else if (number & 1)
		turn_right(left - 1, number >> 1);
	else
		turn_left(left - 1, number >> 1);
	KEEP_FRAME();
}

NAMED static void turn_right(uint32_t left, uint64_t number) /* NOLINT(misc-no-recursion) */
{
	if (!left)
		spin_at_the_end();
	else if (number & 1)
		turn_right(left - 1, number >> 1);
	else
		turn_left(left - 1, number >> 1);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	uint64_t deadline_ns = workload_deadline(argc, argv, "paths SECONDS [LEVELS]");
	uint32_t levels = workload_number(argc, argv, 2, 18, 1, LEVELS_MAX);

	for (uint64_t number = 0; workload_now_ns() < deadline_ns; number++)
		turn_left(levels, number);
	return 0;
}
