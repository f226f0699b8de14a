/* SPDX-License-Identifier: BSD-2-Clause */
/* A program with source lines that the tests know: by the words at their ends. */
#include <stdio.h>

static volatile int sum;

/* The label is at the inlined instruction; the assembler makes it once. */
static inline __attribute__((always_inline)) void specimen_inlined(int n)
{
	__asm__ volatile("specimen_at: .globl specimen_at\n\tnop"); /* line of the instruction */
	sum += n;
}

static inline __attribute__((always_inline)) void specimen_between(int n)
{
	specimen_inlined(n + 1); /* line of the inner call */
}

__attribute__((noinline)) void specimen_telling(int n)
{
	specimen_between(n * 2); /* line of the outer call */
	sum++;
}

int main(int argc, char *argv[])
{
	specimen_telling(argc);
	printf("%d\n", sum);
	return 0;
}
