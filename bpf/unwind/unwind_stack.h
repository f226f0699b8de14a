/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_stack.h: keeps a copy of the part of the user stack that a walk has reached. A read of the
 * process's memory costs more than all the rest of a step, and the words that the steps need are
 * close together, so one read serves several steps.
 */
#ifndef TROCAR_BPF_UNWIND_UNWIND_STACK_H
#define TROCAR_BPF_UNWIND_UNWIND_STACK_H

#ifndef UNWIND_HOST
#include "bpf/unwind/unwind_memory.h"
#endif

/*
 * A function that is placed apart from its callers: at a tick no code is in a cache, so functions
 * that a walk seldom needs are not between those that it needs for each frame.
 */
#define UNWIND_APART static __attribute__((noinline, unused))

#define UNWIND_WORD	   8	 /* bytes of a register */
#define UNWIND_STACK_WORDS 64	 /* a power of two */
#define UNWIND_STACK_BELOW 56	 /* bytes below a return address: saved registers */
#define UNWIND_STACK_PAGE  4096u /* memory is resident or not by whole pages */

/* The copy. All zeros: empty. */
struct unwind_stack {
	__u64 start; /* address of the first word */
	__u64 bytes; /* bytes that are valid */
	__u64 words[UNWIND_STACK_WORDS];
};

/*
 * Reads the part of the stack that contains the aligned word at `at`. It reads only within the page
 * of that word, because the next page may not be resident. Returns 0, or -1 if the read failed.
 */
UNWIND_APART long unwind_stack_move(struct unwind_stack *s, __u64 at)
{
	__u64 in_page = at & (UNWIND_STACK_PAGE - 1), bytes;
	__u64 below = in_page < UNWIND_STACK_BELOW ? in_page : UNWIND_STACK_BELOW;

	bytes = UNWIND_STACK_PAGE - (in_page - below);
	asm volatile("" : "+r"(bytes)); /* keeps the bound in a form that the verifier follows */
	if (bytes > sizeof(s->words))
		bytes = sizeof(s->words);
	s->start = at - below;
	s->bytes = 0;
	if (unwind_read(s->words, bytes, at - below) != 0)
		return -1;
	s->bytes = bytes;
	return 0;
}

/*
 * Reads the word at `at`, which must be aligned, like every word that compilers save there. Returns
 * 0, or -1 if it cannot be read.
 */
static __attribute__((always_inline)) inline long unwind_stack_word(struct unwind_stack *s,
								    __u64 at, __u64 *ret_word)
{
	__u64 offset = at - s->start;

	if (at % UNWIND_WORD)
		return -1;
	if (offset >= s->bytes) {
		if (unwind_stack_move(s, at) != 0)
			return -1;
		offset = at - s->start;
	}
	*ret_word = s->words[offset / UNWIND_WORD & (UNWIND_STACK_WORDS - 1)];
	return 0;
}

#endif
