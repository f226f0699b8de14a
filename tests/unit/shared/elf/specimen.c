/* SPDX-License-Identifier: BSD-2-Clause */
/* specimen.c: a small program with every kind of symbol; linked in several ways for
 * elf_symbols_test. */
#include <stdio.h>

int specimen_global(int n);
int specimen_alias(int n) __attribute__((alias("specimen_global")));
int specimen_resolved(int n);

int specimen_mangled(int n) __asm__("_ZN8specimen6methodEi");

__attribute__((noinline)) int specimen_mangled(int n)
{
	return n * 5;
}

__attribute__((noinline)) static int specimen_local(int n)
{
	return n * 3;
}

__attribute__((noinline)) int specimen_global(int n)
{
	return specimen_local(n) + 1;
}

static int (*resolve(void))(int)
{
	return specimen_local;
}

int specimen_resolved(int n) __attribute__((ifunc("resolve")));

/* A function without a size or type, as hand-written assembly leaves them, and one with a label. */
__asm__(".text\n"
	".globl specimen_untyped\n"
	"specimen_untyped:\n"
	"	nop\n"
	"	nop\n"
	"	ret\n"
	".globl specimen_labelled\n"
	".type specimen_labelled, %function\n"
	"specimen_labelled:\n"
	"	nop\n"
	"specimen_label:\n"
	"	nop\n"
	"	ret\n"
	".size specimen_labelled, . - specimen_labelled\n");

int main(int argc, char **argv)
{
	return printf("%d %d\n", specimen_alias(specimen_mangled(argc)), specimen_resolved(argc)) <
	       0;
}
