/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * leaps.c: main keeps a frame pointer, because it has an alloca; what it calls does not.
 */
#include <alloca.h>

#include "../../workloads/workload.h"

NAMED void leaf(volatile char *room)
{
	for (unsigned int i = 0; i < WORKLOAD_TURNS; i++)
		*room = (char)i;
}

NAMED void middle(volatile char *room)
{
	leaf(room);
	KEEP_FRAME();
}

NAMED void works(volatile char *room)
{
	middle(room);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "leaps SECONDS");
	volatile char *room = alloca(16 * (size_t)argc);

	while (workload_now_ns() < deadline)
		works(room);
	return 0;
}
