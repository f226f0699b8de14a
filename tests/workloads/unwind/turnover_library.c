/* SPDX-License-Identifier: BSD-2-Clause */
/* turnover_library.c: a library that works in lib_L_leaf < lib_L_mid < lib_L_top. */
#include "turnover.h"

#define LEAF TURNOVER_NAME(lib_, LETTER, _leaf)
#define MID  TURNOVER_NAME(lib_, LETTER, _mid)
#define TOP  TURNOVER_NAME(lib_, LETTER, _top)

void TOP(uint64_t until_ns);

NAMED static void LEAF(void)
{
	TURNOVER_PAD();
	turnover_spin();
}

NAMED static void MID(void)
{
	TURNOVER_ROOM();
	TURNOVER_PAD();
	LEAF();
	KEEP_FRAME();
}

NAMED void TOP(uint64_t until_ns)
{
	TURNOVER_PAD();
	while (workload_now_ns() < until_ns)
		MID();
}
