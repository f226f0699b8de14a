/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shapes.c: calls the functions of shapes.S in turn.
 */
#include "../../workloads/workload.h"

void bare_leaf(void);
void pushes(void);
void moves_stack(void);
void keeps_own_register(void);
void says_falsely(void);

NAMED void calls(void (*shape)(void))
{
	shape();
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	static void (*const shapes[])(void) = { bare_leaf, pushes, moves_stack, keeps_own_register,
						says_falsely };
	uint64_t deadline = workload_deadline(argc, argv, "shapes SECONDS");

	for (unsigned int i = 0; workload_now_ns() < deadline; i++)
		calls(shapes[i % 5]);
	return 0;
}
