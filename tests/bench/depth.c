/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * depth SECONDS CALLS: spins below CALLS (at most 100) functions, each one of its own, as a program
 * has them: some keep one value across the call, others two, and between two of them lies text of
 * ROOM other functions, so that the table of call frame information is as large as is wanted. Every
 * 50 ms a line "MONO_NS TURNS" of its loop.
 */
#include <stdint.h>
#include <stdio.h>

#include "tests/workloads/workload.h"

#ifndef ROOM
#define ROOM 0
#endif

#define TURNS	  4096u /* between two looks at the clock */
#define REPORT_NS 50000000ull
#define CALLS	  100

#define WORD_(x) #x
#define WORD(x)	 WORD_(x)

static volatile uint64_t turns;

typedef uint64_t level_fn(uint32_t left, uint64_t until_ns);

static level_fn *const levels[CALLS];

NAMED static uint64_t spin(uint64_t until_ns)
{
	uint64_t now_ns = workload_now_ns(), next_ns = now_ns;

	for (; now_ns < until_ns; now_ns = workload_now_ns()) {
		if (now_ns >= next_ns) {
			printf("%llu %llu\n", (unsigned long long)now_ns,
			       (unsigned long long)turns);
			fflush(stdout);
			next_ns = now_ns + REPORT_NS;
		}
		for (uint32_t i = 0; i < TURNS; i++)
			turns = turns + 1;
	}
	return turns;
}

static uint64_t next(uint32_t left, uint64_t until_ns)
{
	return left ? levels[left - 1](left - 1, until_ns) : spin(until_ns);
}

/* Two rows each, 96 bytes: about as dense as libraries are. */
#if defined(__x86_64__)
#define GAP                                                                                       \
	__asm__(".text\n.p2align 4\n.rept " WORD(                                                 \
		ROOM) "\n.cfi_startproc\npush %rbx\n"                                             \
		      ".cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\n.skip 92, 0x90\npop %rbx\n" \
		      ".cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.endr\n")
#else
#define GAP _Static_assert(1, "")
#endif

#define ONE(n)                                                                     \
	GAP;                                                                       \
	NAMED static uint64_t level_##n(uint32_t left, uint64_t until_ns)          \
	{                                                                          \
		return next(left, until_ns) + (1##n % 2 ? left : until_ns ^ left); \
	}
#define TEN(n)    \
	ONE(n##0) \
	ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define NAME(n) level_##n,
#define NAMES(n)   \
	NAME(n##0) \
	NAME(n##1) \
	NAME(n##2) NAME(n##3) NAME(n##4) NAME(n##5) NAME(n##6) NAME(n##7) NAME(n##8) NAME(n##9)

TEN(0) TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) GAP;

static level_fn *const levels[CALLS] = { NAMES(0) NAMES(1) NAMES(2) NAMES(3) NAMES(4) NAMES(5)
						 NAMES(6) NAMES(7) NAMES(8) NAMES(9) };

int main(int argc, char **argv)
{
	uint64_t deadline_ns = workload_deadline(argc, argv, "depth SECONDS CALLS");

	return next(workload_number(argc, argv, 2, 30, 1, CALLS), deadline_ns) == 0;
}
