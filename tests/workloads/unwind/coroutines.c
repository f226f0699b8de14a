/* SPDX-License-Identifier: BSD-2-Clause */
/* coroutines.c: work on stacks that makecontext made; from there nothing leads to main. */
#include <ucontext.h>

#include "../workload.h"

#define COROUTINES  4
#define STACK_BYTES (64 * 1024)

static ucontext_t main_context, contexts[COROUTINES];
static uint64_t deadline;

NAMED void coroutine_leaf(void)
{
	for (unsigned int i = 0; i < 20 * WORKLOAD_TURNS; i++)
		KEEP_FRAME();
}

NAMED void calls_in_coroutine(void)
{
	coroutine_leaf();
	KEEP_FRAME();
}

/* The others take their turns until each has seen the deadline. */
NAMED void coroutine(int number)
{
	while (workload_now_ns() < deadline) {
		calls_in_coroutine();
		swapcontext(&contexts[number], &contexts[(number + 1) % COROUTINES]);
	}
}

int main(int argc, char **argv)
{
	static char stacks[COROUTINES][STACK_BYTES];

	deadline = workload_deadline(argc, argv, "coroutines SECONDS");
	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = STACK_BYTES;
		contexts[i].uc_link = &main_context;
		makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
	}
	swapcontext(&main_context, &contexts[0]);
	return 0;
}
