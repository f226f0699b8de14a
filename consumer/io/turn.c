/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/io/turn.h"

#include "shared/tools/clock.h"

static uint64_t started_ns; /* 0: no time slice */

void turn_start(uint64_t now_ns)
{
	started_ns = now_ns;
}

uint64_t turn_until_ns(void)
{
	uint64_t now_ns = clock_mono_ns();

	return MAX((started_ns ? started_ns : now_ns) + TURN_NS, now_ns + TURN_LEAST_NS);
}

bool turn_is_over(void)
{
	return started_ns && clock_mono_ns() >= started_ns + TURN_NS;
}
