/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turnover_program FOLDER UNTIL_NS SEED DEPTH: works a little itself, then in libraries that it
 * opens and closes one after the other; then becomes another of the programs, at most DEPTH times,
 * or ends. The libraries come to lie at the same place, unless TURNOVER_APART is set. Its thread's
 * name has at each moment the program and the library it works in ("turn-a-b"): the kernel puts
 * that into each sample, so that the truth is known of each tick.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>

#include "turnover.h"

#define LEAF TURNOVER_NAME(program_, LETTER, _leaf)
#define MID  TURNOVER_NAME(program_, LETTER, _mid)
#define TOP  TURNOVER_NAME(program_, LETTER, _top)
#define RUNS TURNOVER_NAME(program_, LETTER, _runs)

static uint32_t seed;

static uint32_t next_random(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 16) % below;
}

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

NAMED static void TOP(uint64_t until_ns)
{
	TURNOVER_PAD();
	while (workload_now_ns() < until_ns)
		MID();
}

NAMED static void RUNS(void (*top)(uint64_t), uint64_t until_ns)
{
	TURNOVER_ROOM();
	TURNOVER_PAD();
	top(until_ns);
	KEEP_FRAME();
}

static void say_where(char library)
{
	char name[] = "turn-" TURNOVER_TEXT(LETTER) "--";

	name[sizeof(name) - 2] = library;
	prctl(PR_SET_NAME, name);
}

/* Nothing is to lie again where the library was that has this function. */
static void occupy(uintptr_t function)
{
	char *begin = (char *)(function & ~(uintptr_t)4095) - 4096;

	for (int i = 0; i < 5; i++) /* the pages of such a library; its first is the one before */
		mmap(begin + 4096l * i, 4096, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

/* One library's life. */
static void visit(const char *folder)
{
	uint32_t n = next_random(TURNOVER_LETTERS);
	char path[512], symbol[] = "lib_x_top";
	void (*top)(uint64_t);
	void *library;

	symbol[4] = (char)('a' + n);
	snprintf(path, sizeof(path), "%s/lib_%c.so", folder, 'a' + n);
	say_where((char)('a' + n)); /* its own first and last words included */
	library = dlopen(path, RTLD_NOW);
	if (!library)
		_exit(3);
	*(void **)&top = dlsym(library, symbol);
	if (!top)
		_exit(4);
	RUNS(top, workload_now_ns() + (5 + next_random(40)) * 1000000ull);
	dlclose(library);
	say_where('-');
	if (getenv("TURNOVER_APART"))
		occupy((uintptr_t)top);
}

/* Another program, at other or at the same addresses. */
static void become(char **argv, uint32_t depth)
{
	char path[512], seed_text[16], depth_text[16];
	char *words[] = { path, argv[1], argv[2], seed_text, depth_text, NULL };

	snprintf(path, sizeof(path), "%s/program_%c", argv[1],
		 'a' + (int)next_random(TURNOVER_LETTERS));
	snprintf(seed_text, sizeof(seed_text), "%u", next_random(65536));
	snprintf(depth_text, sizeof(depth_text), "%u", depth - 1);
	personality(next_random(3) ? ADDR_NO_RANDOMIZE : 0);
	execv(path, words);
	_exit(5);
}

int main(int argc, char **argv)
{
	uint64_t until_ns;
	uint32_t depth, visits;

	say_where('-');
	if (argc != 5)
		return 2;
	alarm(60);
	until_ns = strtoull(argv[2], NULL, 10);
	seed = workload_number(argc, argv, 3, 0, 0, 65535);
	depth = workload_number(argc, argv, 4, 0, 0, 10);
	TOP(workload_now_ns() + (1 + next_random(10)) * 1000000ull);
	visits = next_random(6);
	for (uint32_t i = 0; i < visits && workload_now_ns() < until_ns; i++)
		visit(argv[1]);
	TOP(workload_now_ns() + next_random(10) * 1000000ull);
	if (depth && workload_now_ns() < until_ns)
		become(argv, depth);
	return 0;
}
