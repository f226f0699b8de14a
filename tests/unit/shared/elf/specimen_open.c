/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * specimen_open.c: a library of hand-written assembly without .size, with functions behind it that
 * a stripped file does not name; for elf_extents_test.
 */
#if defined(__x86_64__)
/* Each ends in its own way: a return behind a loop, a tail call over others, a call for good. */
__asm__(".text\n"
	".p2align 4\n"
	".globl open_loop\n"
	"open_loop:\n"
	"	mov $100, %eax\n"
	"	jmp 2f\n"
	"	.p2align 4\n"
	"1:	dec %eax\n"
	"2:	test %eax, %eax\n"
	"	jnz 1b\n"
	"	ret\n"
	"hidden_behind:\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	".globl open_tail\n"
	"open_tail:\n"
	"	test %edi, %edi\n"
	"	jz 1f\n"
	"	call hidden_behind\n"
	"1:	jmp hidden_last\n"
	"	.p2align 4\n"
	"hidden_between:\n"
	"	mov $1, %eax\n"
	"	ret\n"
	".globl open_trap\n"
	".type open_trap, @function\n"
	"open_trap:\n"
	"	call hidden_end\n"
	"	.p2align 4\n"
	"hidden_end:\n"
	"	jmp hidden_end\n"
	"	.p2align 4\n"
	".globl open_next\n"
	"open_next:\n"
	"	call hidden_next\n"
	"hidden_next:\n"
	"	mov $2, %eax\n"
	"	ret\n"
	"hidden_last:\n"
	"	mov $3, %eax\n"
	"	ret\n");

extern int open_loop(void), open_tail(int), open_next(void);
#else
static int open_loop(void)
{
	return 1;
}

static int open_tail(int n)
{
	return n;
}

static int open_next(void)
{
	return 2;
}
#endif

static volatile int sum;

__attribute__((noinline)) static void specimen_inner(int n)
{
	for (int i = 0; i < n; i++)
		sum += i;
}

__attribute__((noinline)) static void specimen_middle(int n)
{
	specimen_inner(n);
	sum++;
}

void specimen_run(int n);
void specimen_run(int n)
{
	specimen_middle(n + open_loop() + open_tail(n) + open_next());
	sum++;
}
