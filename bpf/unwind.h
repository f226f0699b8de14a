/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind.h: from one frame of a user stack to its caller's, by the tables of
 * shared/abi/unwind_abi.h. The tables are the consumer's and may be wrong: every number of theirs
 * only chooses which element is looked up or which address of the current process is read, both of
 * which can fail, and no loop runs longer than is written here. It compiles for the host as well,
 * where it is tested and fuzzed: with UNWIND_HOST the includer has defined unwind_element,
 * unwind_rule_at and unwind_read.
 */
#ifndef TROCAR_BPF_UNWIND_H
#define TROCAR_BPF_UNWIND_H

#include "bpf/unwind_stack.h"
#include "shared/abi/unwind_abi.h"

/*
 * Where the stacks of a thread may end, as the kernel knows it. None of it comes from the consumer
 * or from the process's memory.
 */
struct unwind_bounds {
	__u64 main;   /* where the main thread's stack begins (mm_struct.start_stack); 0: none */
	__u64 thread; /* thread pointer: a C library keeps it at the upper end of a thread's stack
		       */
	__u64 alternate; /* the stack of signal handlers (sigaltstack(2)), and its bytes */
	__u64 alternate_bytes;
};

/* One frame of the stack, as far as its caller is found by it. */
struct unwind_frame {
	__u64 pc, sp, fp;
	__u64 link;    /* the register of UNWIND_RA_REGISTER; 0: not known, no leaf */
	__u32 exact;   /* pc is what runs next there, not where a call returns to */
	__u32 fp_lost; /* fp is not this frame's */
	/* Not of the frame, but of the walk: */
	__u64 top;     /* the stack ends there: unwind_stack_top */
	__u32 signals; /* frames of signal handlers that were left */
	__u32 pad;
	struct unwind_bounds bounds;
	struct unwind_stack stack;
};

#define UNWIND_STACK_MAX   (1ull << 30) /* a stack is not larger */
#define UNWIND_RED_ZONE	   128		/* bytes below the stack pointer that a leaf may use */
#define UNWIND_SIGNALS_MAX 2
#define UNWIND_CONTEXT_FP  120 /* of struct ucontext: arch/x86/include/uapi/asm/sigcontext.h */
#define UNWIND_CONTEXT_SP  160
#define UNWIND_CONTEXT_PC  168
#define UNWIND_SIGRETURN   0x0f0000000fc0c748ull /* mov $15, %rax; syscall: its first 8 bytes, */
#define UNWIND_SIGRETURN_1 0x050f0000000fc0c7ull /* and its last 8 */

/*
 * The upper end of the stack that `sp` is on: the nearest of the bounds above it, or so far away
 * that no stack is larger. What lies above is not read.
 */
static __attribute__((always_inline)) inline __u64 unwind_stack_top(const struct unwind_bounds *b,
								    __u64 sp)
{
	__u64 room = UNWIND_STACK_MAX;

	if (b->main - sp < room)
		room = b->main - sp;
	if (b->thread - sp < room)
		room = b->thread - sp;
	if (~sp < room)
		room = ~sp;
	return sp + room;
}

/* Begins a walk at `f`, whose registers and bounds are set. */
static __attribute__((always_inline)) inline void unwind_begin(struct unwind_frame *f)
{
	f->top = unwind_stack_top(&f->bounds, f->sp);
	f->signals = 0;
	f->stack.bytes = 0;
}

/*
 * Whether `address` is on the stack of `f`, at or above it. This is all that a word of the process
 * is ever compared with before it is followed: a word that is no address of its own stack, and none
 * of its code, leads to the same end whatever it is (UNWIND_END_NO_CALLER). So tables that lie
 * cannot compute on memory.
 */
static __attribute__((always_inline)) inline __u32 unwind_on_stack(const struct unwind_frame *f,
								   __u64 address)
{
	return address - f->sp <= f->top - f->sp;
}

/* Whether `address` may be on a stack that the kernel knows of, the main thread's or this one's. */
static __attribute__((always_inline)) inline __u32
unwind_on_known_stack(const struct unwind_bounds *b, __u64 address)
{
	return (address < b->main && b->main - address < UNWIND_STACK_MAX) ||
	       (address < b->thread && b->thread - address < UNWIND_STACK_MAX);
}

/* The word at `at`, which must lie between `f` and `end`. 0, or it cannot be read. */
static __attribute__((always_inline)) inline long
unwind_read_saved(struct unwind_frame *f, __u64 at, __u64 end, __u64 *ret_word)
{
	if (at < f->sp || at >= end || end - at < UNWIND_WORD)
		return -1;
	return unwind_stack_word(&f->stack, at, ret_word);
}

/* The same of a frame's whole stack, with what a leaf may have below its stack pointer. */
static __attribute__((always_inline)) inline long unwind_read_kept(struct unwind_frame *f, __u64 at,
								   __u64 *ret_word)
{
	if (f->exact && f->sp - at <= UNWIND_RED_ZONE)
		return unwind_stack_word(&f->stack, at, ret_word);
	return unwind_read_saved(f, at, f->top, ret_word);
}

/*
 * The rule in force at `pc`, an address less the table's base, or UNWIND_RULE_NONE. The search is
 * free of branches on what it finds: with them the verifier would follow each way through every
 * halving.
 */
static __attribute__((always_inline)) inline __u32 unwind_search(const struct unwind_place *place,
								 __u64 pc)
{
	__u64 page = pc >> UNWIND_PAGE_SHIFT;
	const __u64 *element;
	__u32 word, row, left;

	if (page >= place->page_count)
		return UNWIND_RULE_NONE;
	element = unwind_element(place->pages + (__u32)(page >> 1));
	if (!element)
		return UNWIND_RULE_NONE;
	word = (__u32)(*element >> (page & 1) * 32);
	row = UNWIND_PAGE_FIRST(word);
	left = UNWIND_PAGE_COUNT(word);
	for (int i = 0; i < UNWIND_SEARCH_STEPS; i++) {
		__u32 half = left >> 1;
		__u64 reached;

		element = unwind_element(place->rows + row + half);
		if (!element)
			return UNWIND_RULE_NONE;
		reached = ~(pc - (__u32)*element) >> 63;
		asm volatile("" : "+r"(reached));
		row += half & -(__u32)reached;
		left -= half;
	}
	element = row < place->row_count ? unwind_element(place->rows + row) : 0;
	return element ? (__u16)(*element >> 32) : UNWIND_RULE_NONE;
}

/*
 * The caller's stack pointer, which lies above this frame and on the same stack. Not to be asked
 * for a rule without one.
 */
static __attribute__((always_inline)) inline enum unwind_end
unwind_find_cfa(struct unwind_frame *f, const struct unwind_rule *rule, __u64 *ret_cfa)
{
	__s32 offset = rule->cfa_offset;
	__u8 kind = rule->cfa;
	__u64 base = f->sp, cfa;

	if (kind == UNWIND_CFA_FP || kind == UNWIND_CFA_FP_MEMORY) {
		if (f->fp_lost)
			return UNWIND_END_FRAME_POINTER;
		if (!unwind_on_stack(f, f->fp))
			return UNWIND_END_NO_CALLER;
		base = f->fp;
	}
	cfa = base + (__s64)offset;
	if (kind == UNWIND_CFA_PLT) {
		cfa = base + (__s64)UNWIND_LOW(offset);
		cfa += (__s16)(f->pc & 15) >= UNWIND_HIGH(offset) ? UNWIND_WORD : 0;
	} else if (kind != UNWIND_CFA_SP && kind != UNWIND_CFA_FP) {
		base += (__s64)UNWIND_LOW(offset);
		if (unwind_read_kept(f, base, &cfa) != 0 || !unwind_on_stack(f, cfa))
			return UNWIND_END_NO_CALLER;
		cfa += (__s64)UNWIND_HIGH(offset);
		if (cfa <= base)
			return UNWIND_END_NO_CALLER;
	}
	if (cfa == f->sp || !unwind_on_stack(f, cfa))
		return UNWIND_END_NO_CALLER;
	*ret_cfa = cfa;
	return UNWIND_END_NONE;
}

/*
 * The caller's frame pointer; *ret_lost when no rule can say it. Where the rule leads out of this
 * frame the register has been restored already: compilers take no note of that in an epilogue.
 */
static __attribute__((always_inline)) inline enum unwind_end
unwind_find_fp(struct unwind_frame *f, const struct unwind_rule *rule, __u64 cfa, __u64 *ret_fp,
	       __u32 *ret_lost)
{
	__u8 kind = UNWIND_SAVED_FP(rule->saved);
	__u64 at = cfa + (__s64)rule->fp_offset;

	*ret_fp = f->fp;
	*ret_lost = f->fp_lost;
	if (kind == UNWIND_FP_SAME)
		return UNWIND_END_NONE;
	if (kind >= UNWIND_FP_UNKNOWN || (kind == UNWIND_FP_FP && f->fp_lost)) {
		*ret_lost = 1;
		return UNWIND_END_NONE;
	}
	if (kind == UNWIND_FP_FP && !unwind_on_stack(f, f->fp))
		return UNWIND_END_NONE;
	if (kind == UNWIND_FP_FP)
		at = f->fp + (__s64)rule->fp_offset;
	else if (kind == UNWIND_FP_SP)
		at = f->sp + (__s64)rule->fp_offset;
	if (at < f->sp || at >= cfa)
		return UNWIND_END_NONE;
	*ret_lost = 0;
	return unwind_read_saved(f, at, cfa, ret_fp) ? UNWIND_END_NO_CALLER : UNWIND_END_NONE;
}

/* The caller of a leaf that has its return address in a register: its frame may have no bytes. */
static __attribute__((always_inline)) inline enum unwind_end
unwind_apply_link(struct unwind_frame *f, const struct unwind_rule *rule)
{
	__u64 sp = f->sp + (__u64)rule->cfa_offset;

	if (rule->cfa != UNWIND_CFA_SP || rule->cfa_offset < 0 ||
	    rule->saved != UNWIND_SAVED(UNWIND_RA_REGISTER, UNWIND_FP_SAME))
		return UNWIND_END_BAD_RULE;
	if (f->link == 0 || !unwind_on_stack(f, sp))
		return UNWIND_END_NO_CALLER;
	f->pc = f->link;
	f->sp = sp;
	f->link = 0;
	f->exact = 0;
	return UNWIND_END_NONE;
}

/* Whether at `pc` is what a signal handler returns to: what calls rt_sigreturn(2). */
static __attribute__((always_inline)) inline __u32 unwind_sigreturn_at(__u64 pc)
{
	__u64 first, last;

	return unwind_read(&first, sizeof(first), pc) == 0 &&
	       unwind_read(&last, sizeof(last), pc + 1) == 0 && first == UNWIND_SIGRETURN &&
	       last == UNWIND_SIGRETURN_1;
}

/* The same for a `pc` anywhere in it: at its beginning, at its call, or behind, in the kernel. */
static __attribute__((always_inline)) inline __u32 unwind_is_sigreturn(__u64 pc)
{
	return unwind_sigreturn_at(pc) || unwind_sigreturn_at(pc - 7) ||
	       unwind_sigreturn_at(pc - 9);
}

/*
 * What a signal interrupted, from the registers that the kernel saved where it called the handler:
 * sp points to them. Of the rule nothing is taken but that this is such a frame, and that only
 * where the code says so too. The handler ran on the interrupted stack, or on its own: then the
 * interrupted one is a stack that the kernel knows of, and no word that memory has in its place.
 */
static __attribute__((always_inline)) inline enum unwind_end
unwind_apply_signal(struct unwind_frame *f)
{
	const struct unwind_bounds *b = &f->bounds;
	__u64 pc, sp, fp;

	if (f->signals >= UNWIND_SIGNALS_MAX || !unwind_is_sigreturn(f->pc))
		return UNWIND_END_BAD_RULE;
	if (unwind_read_saved(f, f->sp + UNWIND_CONTEXT_FP, f->top, &fp) != 0 ||
	    unwind_read_saved(f, f->sp + UNWIND_CONTEXT_SP, f->top, &sp) != 0 ||
	    unwind_read_saved(f, f->sp + UNWIND_CONTEXT_PC, f->top, &pc) != 0)
		return UNWIND_END_NO_CALLER;
	if (f->sp - b->alternate < b->alternate_bytes) {
		if (!unwind_on_known_stack(b, sp))
			return UNWIND_END_NO_CALLER;
		f->top = unwind_stack_top(b, sp);
	} else if (sp == f->sp || !unwind_on_stack(f, sp)) {
		return UNWIND_END_NO_CALLER;
	}
	f->pc = pc;
	f->sp = sp;
	f->fp = fp;
	f->link = 0;
	f->exact = 1;
	f->fp_lost = 0;
	f->signals++;
	return UNWIND_END_NONE;
}

/*
 * Makes `f` its caller by `rule`. UNWIND_END_NONE, or why there is none: then *f is as before, but
 * for its piece of the stack. Whatever the rule says, what an ABI guarantees of stacks holds:
 * frames ascend on one stack, and what a frame has saved lies inside of it.
 */
static __attribute__((always_inline)) inline enum unwind_end
unwind_apply(struct unwind_frame *f, const struct unwind_rule *rule)
{
	__u8 ra = UNWIND_SAVED_RA(rule->saved);
	__u64 pc, sp, fp, at;
	enum unwind_end end;
	__u32 fp_lost;

	if (rule->cfa == UNWIND_CFA_END)
		return UNWIND_END_COMPLETE;
	if (rule->cfa == UNWIND_CFA_NONE)
		return UNWIND_END_NO_ROW;
	if (rule->cfa < UNWIND_CFA_SP || rule->cfa > UNWIND_CFA_PLT)
		return UNWIND_END_BAD_RULE;
	if (ra == UNWIND_RA_REGISTER)
		return unwind_apply_link(f, rule);
	if (ra == UNWIND_RA_CONTEXT || rule->saved & UNWIND_SAVED_EXACT)
		return unwind_apply_signal(f);
	if (ra != UNWIND_RA_CFA && ra != UNWIND_RA_ALONE)
		return UNWIND_END_BAD_RULE;
	end = unwind_find_cfa(f, rule, &sp);
	if (end != UNWIND_END_NONE)
		return end;
	at = ra == UNWIND_RA_CFA ? sp - UNWIND_WORD : sp + (__s64)rule->fp_offset;
	if (unwind_read_saved(f, at, sp, &pc) != 0)
		return UNWIND_END_NO_CALLER;
	end = unwind_find_fp(f, rule, sp, &fp, &fp_lost);
	if (end != UNWIND_END_NONE)
		return end;
	f->pc = pc;
	f->sp = sp;
	f->fp = fp;
	f->link = 0;
	f->exact = 0;
	f->fp_lost = fp_lost;
	return UNWIND_END_NONE;
}

/*
 * The rule for `f` of the table at `place`, whose rows count from `base` on: where the mapped
 * file's table base is in the process. A call may be its function's last instruction, so that what
 * it returns to belongs to the next: the byte before is looked up. It is a copy: somebody may be
 * writing.
 */
static __attribute__((always_inline)) inline struct unwind_rule
unwind_rule_of(const struct unwind_frame *f, const struct unwind_place *place, __u64 base)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_NONE };
	const struct unwind_rule *found;
	__u64 pc = f->pc - (f->exact ? 0 : 1);

	if (pc < base)
		return rule;
	found = unwind_rule_at(unwind_search(place, pc - base));
	if (found)
		rule = *found;
	if (!found || rule.cfa > UNWIND_CFA_PLT)
		rule.cfa = UNWIND_CFA_UNSUPPORTED;
	return rule;
}

/* Makes `f` its caller by the table at `place`, as unwind_apply does. */
static __attribute__((always_inline)) inline enum unwind_end
unwind_step(struct unwind_frame *f, const struct unwind_place *place, __u64 base)
{
	struct unwind_rule rule = unwind_rule_of(f, place, base);

	return unwind_apply(f, &rule);
}

/* A return address without the authentication code that arm64 may have put into its upper bits. */
#if defined(__TARGET_ARCH_arm64)
#define UNWIND_CODE(pc) ((pc) & ((1ull << 48) - 1))
#else
#define UNWIND_CODE(pc) (pc)
#endif

/* Makes `f` its caller by the frame pointer, as code without rows that keeps it allows. */
static __attribute__((always_inline)) inline enum unwind_end unwind_step_fp(struct unwind_frame *f)
{
	__u64 at = f->fp, fp, pc;

	if (f->fp_lost)
		return UNWIND_END_FRAME_POINTER;
	if (unwind_read_saved(f, at, f->top, &fp) != 0 ||
	    unwind_read_saved(f, at + UNWIND_WORD, f->top, &pc) != 0)
		return UNWIND_END_NO_CALLER;
	f->pc = UNWIND_CODE(pc);
	f->sp = at + 2 * UNWIND_WORD;
	f->fp = fp;
	f->link = 0;
	f->exact = 0;
	return UNWIND_END_NONE;
}

#endif
