/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * freestanding.c: a program without a C library and without any call frame information, with a
 * frame pointer of 0 for all its life. It ends by alarm(2).
 */
#include <sys/syscall.h>

#define NAMED __attribute__((noinline, noclone, used))

static long call_kernel(long number, long a)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(number), "D"(a) : "rcx", "r11", "memory");
	return r;
}

NAMED void leaf(void)
{
	for (unsigned int i = 0; i < 20000; i++)
		__asm__ volatile("" ::: "memory");
}

NAMED void middle(void)
{
	leaf();
	__asm__ volatile("" ::: "memory");
}

NAMED void works(void)
{
	for (;;) {
		middle();
		__asm__ volatile("" ::: "memory");
	}
}

__attribute__((noreturn, force_align_arg_pointer)) void _start(void)
{
	__asm__ volatile("xor %%ebp, %%ebp" ::: "memory");
	call_kernel(SYS_alarm, 240);
	works();
	call_kernel(SYS_exit_group, 0);
	__builtin_unreachable();
}
