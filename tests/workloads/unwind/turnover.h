/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turnover.h: what the programs and libraries of the turnover share. Each is compiled once per
 * LETTER (a to d), with other sizes of code and frames, so that an address of one is no return
 * address of another, and rows of one lead astray in another.
 */
#ifndef TROCAR_TESTS_WORKLOADS_UNWIND_TURNOVER_H
#define TROCAR_TESTS_WORKLOADS_UNWIND_TURNOVER_H

#include "../workload.h"

#define TURNOVER_LETTERS	4
#define TURNOVER_PASTE(a, b, c) a##b##c
#define TURNOVER_NAME(a, b, c)	TURNOVER_PASTE(a, b, c)
#define TURNOVER_TEXT_(x)	#x
#define TURNOVER_TEXT(x)	TURNOVER_TEXT_(x)

/* Code and stack of this letter's size. */
#define TURNOVER_PAD() __asm__ volatile(".skip %c0, 0x90" ::"i"(PAD))
#define TURNOVER_ROOM()                                      \
	do {                                                 \
		char room[ROOM];                             \
		__asm__ volatile("" ::"r"(room) : "memory"); \
	} while (0)

static inline __attribute__((always_inline)) void turnover_spin(void)
{
	for (unsigned int i = 0; i < 20 * WORKLOAD_TURNS; i++)
		KEEP_FRAME();
}

#endif
