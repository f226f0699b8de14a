/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_stack.h: the stack of the process, a piece of it at a time. A read of its memory costs
 * more than all else of a step, and what the steps ask for lies close together: one read serves
 * several.
 */
#ifndef TROCAR_BPF_UNWIND_STACK_H
#define TROCAR_BPF_UNWIND_STACK_H

#ifndef UNWIND_HOST
#include "bpf/unwind_memory.h"
#endif

#define UNWIND_WORD	   8	 /* bytes of a register */
#define UNWIND_STACK_WORDS 64	 /* a power of two */
#define UNWIND_STACK_BELOW 56	 /* bytes below a return address: where registers are saved */
#define UNWIND_STACK_PAGE  4096u /* what is resident, or is not, as a whole */

/* All zeros: nothing is in it. */
struct unwind_stack {
	__u64 start; /* address of the first word */
	__u64 bytes; /* that are in it */
	__u64 words[UNWIND_STACK_WORDS];
};

/*
 * Reads anew, so that the word at `at`, which is aligned, is in it. It stays in that word's page:
 * what lies beyond may be missing, and the word there all the same. 0, or the read failed.
 */
static __attribute__((always_inline)) inline long unwind_stack_move(struct unwind_stack *s,
								    __u64 at)
{
	__u64 in_page = at & (UNWIND_STACK_PAGE - 1), bytes;
	__u64 below = in_page < UNWIND_STACK_BELOW ? in_page : UNWIND_STACK_BELOW;

	bytes = UNWIND_STACK_PAGE - (in_page - below);
	asm volatile("" : "+r"(bytes)); /* the wall must stay one that the verifier sees */
	if (bytes > sizeof(s->words))
		bytes = sizeof(s->words);
	s->start = at - below;
	s->bytes = 0;
	if (unwind_read(s->words, bytes, at - below) != 0)
		return -1;
	s->bytes = bytes;
	return 0;
}

/* The word at `at`, as all that compilers save there aligned. 0, or it cannot be read. */
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
