/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * specimen_go.S: two functions and a .gopclntab about them, as Go's linkers laid it out: LAYOUT 2 (Go 1.2),
 * 16 (1.16), 18 (1.18), 20 (1.20), 26 (1.26, whose header does not say where the text begins). debug/gosym/pclntab.go has
 * the fields. CRT: code that is not Go's stands before it. MODULE: with the section of runtime.moduledata, which says as
 * lowest address MODULE. SECOND is the name of the second function.
 */
#ifndef SECOND
#define SECOND "main.(*T).second"
#endif
	.text
#ifdef CRT
	.globl _start
_start:
	.skip 48, 0x90
#endif
	.globl first
first:
	.skip 16, 0x90
	.globl second
second:
	.skip 32, 0x90
end:

	.section .gopclntab, "a"
	.balign 32
table:
#if LAYOUT == 2
	.long 0xfffffffb
#elif LAYOUT == 16
	.long 0xfffffffa
#elif LAYOUT == 18
	.long 0xfffffff0
#else
	.long 0xfffffff1
#endif
	.byte 0, 0, 1, 8
	.quad 2
#if LAYOUT > 2
	.quad 0
#if LAYOUT == 26
	.quad 0
#elif LAYOUT > 16
	.quad first
#endif
	.quad names - table
	.quad 0, 0, 0
	.quad functions - table
#define BASE functions
#else
#define BASE table
#define names table
#endif
#if LAYOUT > 16
#define ADDRESS(label) .long label - first
#define OFFSET(label)  .long label - BASE
#else
#define ADDRESS(label) .quad label
#define OFFSET(label)  .quad label - BASE
#endif
functions:
	ADDRESS(first)
	OFFSET(first_record)
	ADDRESS(second)
	OFFSET(second_record)
	ADDRESS(end)
	OFFSET(second_record)
first_record:
	ADDRESS(first)
	.long first_name - names
second_record:
	ADDRESS(second)
	.long second_name - names
#if LAYOUT > 2
names:
	.byte 0
#endif
first_name:
	.asciz "main.first"
second_name:
	.asciz SECOND
	.skip 64

#ifdef MODULE
	.section .go.module, "aw"
	.balign 32
	.quad table
	.fill 19, 8, 0
	.quad MODULE, end
	.quad first, end
	.fill 16, 8, 0
#endif
