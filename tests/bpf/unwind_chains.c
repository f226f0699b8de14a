/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind_chains.h"

#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOTTOM_BYTES 1024 /* more than the function has */
#define DEPTH	     9

/* A function of its own, called by everyone as it stands. */
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif

/* Keeps a call from becoming a jump. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static struct chain *chain;
static volatile unsigned int sink;

void chains_prepare(void)
{
	void *frames[4];

	backtrace(frames, 4);
}

KEPT __attribute__((aligned(BOTTOM_BYTES))) static void bottom(void)
{
	int n = backtrace(chain->frames, CHAIN_FRAMES);
	unsigned int x = 1;

	chain->count = (uint32_t)n;
	__atomic_store_n(&chain->ready, 1, __ATOMIC_RELEASE);
	for (;;) {
		x = x * 1664525u + 1013904223u;
		__asm__ volatile("" : "+r"(x));
		if (x % 1024 == 0)
			__atomic_fetch_add(&chain->turns, 1, __ATOMIC_RELAXED);
	}
}

int chains_is_bottom(uint64_t address)
{
	return address - (uintptr_t)bottom < BOTTOM_BYTES;
}

/*
 * Many functions, because the kernel side does not look up a known return address again: each has
 * frames of its own size and calls the next.
 */
#define LINK(this, next)                                     \
	KEPT static void link_##this(void)                   \
	{                                                    \
		char room[16 + 8 * (__COUNTER__ % 11)];      \
                                                             \
		__asm__ volatile("" ::"r"(room) : "memory"); \
		next();                                      \
		KEEP_FRAME();                                \
	}
#define LINKS(tens, last)             \
	LINK(tens##9, last)           \
	LINK(tens##8, link_##tens##9) \
	LINK(tens##7, link_##tens##8) \
	LINK(tens##6, link_##tens##7) \
	LINK(tens##5, link_##tens##6) \
	LINK(tens##4, link_##tens##5) \
	LINK(tens##3, link_##tens##4) \
	LINK(tens##2, link_##tens##3) \
	LINK(tens##1, link_##tens##2) \
	LINK(tens##0, link_##tens##1)

LINKS(7, bottom)
LINKS(6, link_70)
LINKS(5, link_60)
LINKS(4, link_50)
LINKS(3, link_40)
LINKS(2, link_30)
LINKS(1, link_20)
LINKS(0, link_10)

static void descend(unsigned int depth, void (*then)(void));

/* A frame with a size that no row knows: the frame address is in a register. */
KEPT static void descend_alloca(unsigned int depth, void (*then)(void))
{
	char *bytes = alloca(16 + 24 * (size_t)depth);

	bytes[0] = (char)depth;
	__asm__ volatile("" ::"r"(bytes) : "memory");
	descend(depth - 1, then);
	sink = (unsigned int)bytes[0];
}

KEPT static void descend_wide(unsigned int depth, void (*then)(void))
{
	unsigned int words[40];

	for (unsigned int i = 0; i < 40; i++)
		words[i] = depth + sink;
	__asm__ volatile("" ::"r"(words) : "memory");
	descend(depth - 1, then);
	sink = words[depth % 40];
}

/* NOLINTNEXTLINE(misc-no-recursion): the test is about the depth */
KEPT static void descend(unsigned int depth, void (*then)(void))
{
	if (depth == 0)
		then();
	else if (depth % 3 == 0)
		descend_alloca(depth, then);
	else if (depth % 3 == 1)
		descend_wide(depth, then);
	else
		descend(depth - 1, then);
	KEEP_FRAME();
}

static int compare_last(const void *a, const void *b)
{
	descend(DEPTH, link_00);
	return *(const int *)a - *(const int *)b;
}

KEPT static void search(void)
{
	int key = 2, values[3] = { 1, 2, 3 };

	sink = bsearch(&key, values, 3, sizeof(*values), compare_last) != NULL;
}

static int compare_first(const void *a, const void *b)
{
	descend(DEPTH / 2, search);
	return *(const int *)a - *(const int *)b;
}

KEPT static void sort(void)
{
	int values[5] = { 5, 4, 3, 2, 1 };

	qsort(values, 5, sizeof(*values), compare_first);
	sink = (unsigned int)values[0];
}

static int compare_of_tree(const void *a, const void *b)
{
	descend(DEPTH + DEPTH / 2, link_00);
	return *(const int *)a - *(const int *)b;
}

static void *grow_tree(void *unused)
{
	static int values[2] = { 1, 2 };
	void *root = NULL;

	tsearch(&values[0], &root, compare_of_tree);
	tsearch(&values[1], &root, compare_of_tree);
	return unused;
}

void chains_run(void *context)
{
	pthread_t thread;

	chain = context;
	if (chain->which == 0)
		sort();
	else if (pthread_create(&thread, NULL, grow_tree, NULL) == 0)
		pthread_join(thread, NULL);
	_exit(98);
}
