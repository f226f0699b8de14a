/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.c: the ways in which C functions call each other, each with a leaf of its own that does the
 * work, in the main thread and in another: a frameless leaf, a tail call, alloca, a function that
 * does not return, a callback of libc's. Built as any program is, without a word about frames.
 */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>

#include "../workload.h"

#define GOODS	   24
#define NEVER_EACH 16 /* turns: within longjmp no stack can be walked, so it is to be rare */

static uint64_t deadline;

static inline __attribute__((always_inline)) void spin(unsigned int turns)
{
	for (unsigned int i = 0; i < turns; i++)
		KEEP_FRAME();
}

NAMED void plain_leaf(void)
{
	spin(WORKLOAD_TURNS);
}

NAMED void calls_leaf(void)
{
	plain_leaf();
	KEEP_FRAME();
}

NAMED void tail_leaf(void)
{
	spin(WORKLOAD_TURNS);
}

NAMED void tail_target(void)
{
	tail_leaf();
	KEEP_FRAME();
}

/* A jump: no stack can show that it was here. */
NAMED void tail_jumps(void)
{
	tail_target();
}

NAMED void calls_tail(void)
{
	tail_jumps();
	KEEP_FRAME();
}

NAMED void alloca_leaf(volatile char *room)
{
	*room = 1;
	spin(WORKLOAD_TURNS);
}

/* Its frame's size is not known before: here the compiler itself needs a frame pointer. */
NAMED void calls_with_alloca(size_t bytes)
{
	alloca_leaf(alloca(bytes));
	KEEP_FRAME();
}

static __thread jmp_buf back;

NAMED void never_leaf(void)
{
	spin(NEVER_EACH * WORKLOAD_TURNS);
}

NAMED __attribute__((noreturn)) void never_returns(void)
{
	never_leaf();
	longjmp(back, 1);
}

/* The call is its last instruction: the return address belongs to the next function. */
NAMED void calls_never(volatile uint64_t *count)
{
	(*count)++;
	never_returns();
}

NAMED void catches_never(void)
{
	volatile uint64_t count = 0;

	if (setjmp(back) == 0)
		calls_never(&count);
	KEEP_FRAME();
}

NAMED int compare_goods(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	spin(WORKLOAD_TURNS / 100);
	return x < y ? -1 : x > y;
}

NAMED void sorts_goods(void)
{
	int goods[GOODS];

	for (int i = 0; i < GOODS; i++)
		goods[i] = i * 7919 % 1009;
	qsort(goods, GOODS, sizeof(*goods), compare_goods);
	KEEP_FRAME();
}

NAMED void *works(void *argument)
{
	for (size_t i = 0; workload_now_ns() < deadline; i++) {
		calls_leaf();
		calls_tail();
		calls_with_alloca(16 + i % 4096);
		if (i % NEVER_EACH == 0)
			catches_never();
		sorts_goods();
	}
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	deadline = workload_deadline(argc, argv, "calls SECONDS");
	if (pthread_create(&thread, NULL, works, NULL) != 0)
		return 1;
	works(NULL);
	pthread_join(thread, NULL);
	return 0;
}
