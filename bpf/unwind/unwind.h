/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind.h: steps from one frame of a user stack to its caller by the tables of
 * shared/abi/unwind_abi.h. The consumer writes the tables and they may be wrong: each of their
 * numbers only selects which element is looked up or which address of the current process is read.
 * Both may fail, and every loop has a fixed limit.
 *
 * The guarantees of an ABI are enforced for any table, so that no rule can compute on memory
 * (docs/decisions/0012-unwind-tables.md). Frames ascend on one stack of at most UNWIND_STACK_MAX
 * bytes, from the stack pointer of the tick to an end that the kernel knows (struct unwind_bounds).
 * Words are aligned. The return address and a saved frame pointer are in the frame that is left; a
 * leaf may keep words in the UNWIND_RED_ZONE below its stack pointer. A frame pointer, and the
 * address of a frame that memory contains, are accepted only on that stack. The frame that a signal
 * interrupted is read where the kernel saved it, and not at the place that a rule gives.
 *
 * It also compiles for the host, for tests and fuzzing: with UNWIND_HOST the includer defines
 * unwind_element, unwind_rule_at and unwind_read.
 */
#ifndef TROCAR_BPF_UNWIND_UNWIND_H
#define TROCAR_BPF_UNWIND_UNWIND_H

#include "bpf/unwind/unwind_stack.h"
#include "shared/abi/unwind_abi.h"

/*
 * Possible ends of a thread's stacks, as the kernel knows them: neither the consumer nor the memory
 * of the process has any influence.
 */
struct unwind_bounds {
	__u64 main;	 /* start of the main thread's stack (mm_struct.start_stack); 0: none */
	__u64 thread;	 /* thread pointer: C libraries keep it at the upper end of the stack */
	__u64 alternate; /* stack of signal handlers (sigaltstack(2)), and its bytes */
	__u64 alternate_bytes;
};

/* One frame: the data needed to find its caller. */
struct unwind_frame {
	__u64 pc, sp, fp;
	__u64 link;    /* the register of UNWIND_RA_REGISTER; 0: unknown, or not a leaf */
	__u32 exact;   /* pc is the next instruction to run, not a return address */
	__u32 fp_lost; /* fp is not the value of this frame */
	/* State of the walk: */
	__u64 top;     /* upper end of the stack: unwind_stack_top */
	__u32 signals; /* signal frames that the walk has left */
	__u32 pad;
	struct unwind_stack stack;
	struct unwind_bounds bounds;
};

/* A rule that no table contains: use the frame pointer, because the address has no row. */
#define UNWIND_CFA_POINTER 255
/* As UNWIND_CFA_POINTER, and the code has shown that the frame pointer is its function's own. */
#define UNWIND_CFA_POINTER_OWN 254
/* As UNWIND_CFA_POINTER, and the code shows nothing. */
#define UNWIND_CFA_POINTER_ONLY 253

#define UNWIND_STACK_MAX   (1ull << 30) /* bytes: no stack is larger */
#define UNWIND_RED_ZONE	   128		/* bytes below the stack pointer that a leaf may use */
#define UNWIND_SIGNALS_MAX 2
#define UNWIND_CONTEXT_FP \
	120 /* offsets in struct ucontext: arch/x86/include/uapi/asm/sigcontext.h */
#define UNWIND_CONTEXT_SP  160
#define UNWIND_CONTEXT_PC  168
#define UNWIND_SIGRETURN   0x0f0000000fc0c748ull /* mov $15, %rax; syscall: its first 8 bytes, */
#define UNWIND_SIGRETURN_1 0x050f0000000fc0c7ull /* and its last 8 */

/*
 * Returns the upper end of the stack that `sp` is on: the nearest bound above it, or the maximum
 * size of a stack. Memory above it is not read.
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

/* Begins a walk at `f`, with registers and bounds set by the caller. */
static __attribute__((always_inline)) inline void unwind_begin(struct unwind_frame *f)
{
	f->top = unwind_stack_top(&f->bounds, f->sp);
	f->signals = 0;
	f->stack.bytes = 0;
}

/*
 * Returns 1 if `address` is on the stack of `f`, at or above its stack pointer. A word of the
 * process is compared with nothing else before the walk follows it: a word that is an address
 * neither of its stack nor of its code leads to one stop reason (UNWIND_END_NO_CALLER), whatever
 * its value is. So false tables cannot compute on memory.
 */
static __attribute__((always_inline)) inline __u32 unwind_on_stack(const struct unwind_frame *f,
								   __u64 address)
{
	return address - f->sp <= f->top - f->sp;
}

/*
 * Returns 1 if `address` may be on a stack that the kernel knows: the main thread's or this
 * thread's.
 */
static __attribute__((always_inline)) inline __u32
unwind_on_known_stack(const struct unwind_bounds *b, __u64 address)
{
	return (address < b->main && b->main - address < UNWIND_STACK_MAX) ||
	       (address < b->thread && b->thread - address < UNWIND_STACK_MAX);
}

/*
 * Reads the word at `at`, which must be between the stack pointer of `f` and `end`. Returns 0, or
 * -1 if it is not there or cannot be read.
 */
static __attribute__((always_inline)) inline long
unwind_read_saved(struct unwind_frame *f, __u64 at, __u64 end, __u64 *ret_word)
{
	if (at < f->sp || at >= end || end - at < UNWIND_WORD)
		return -1;
	return unwind_stack_word(&f->stack, at, ret_word);
}

/* As unwind_read_saved, up to the end of the stack; for a leaf also within its red zone. */
static __attribute__((always_inline)) inline long unwind_read_kept(struct unwind_frame *f, __u64 at,
								   __u64 *ret_word)
{
	if (f->exact && f->sp - at <= UNWIND_RED_ZONE)
		return unwind_stack_word(&f->stack, at, ret_word);
	return unwind_read_saved(f, at, f->top, ret_word);
}

/*
 * Returns the rule for `pc`, an address minus the table's base, or UNWIND_RULE_NONE. The search has
 * no branch on the words that it reads: with branches the verifier would follow every path through
 * the halvings.
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
 * Finds the caller's stack pointer, which is above this frame on the same stack. The rule must have
 * a CFA.
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
 * Finds the caller's frame pointer. Sets *ret_lost if no rule describes it. If the rule points
 * outside of this frame, the register has already been restored: compilers do not describe that in
 * an epilogue.
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

/* Sets the registers of `f` to those of its caller. */
static __attribute__((always_inline)) inline void unwind_enter(struct unwind_frame *f, __u64 pc,
							       __u64 sp, __u64 fp)
{
	f->pc = pc;
	f->sp = sp;
	f->fp = fp;
	f->link = 0;
	f->exact = 0;
}

/*
 * Steps `f` to its caller for a leaf with its return address in a register. Its frame may be empty.
 */
static __attribute__((always_inline)) inline enum unwind_end
unwind_apply_link(struct unwind_frame *f, const struct unwind_rule *rule)
{
	__u64 sp = f->sp + (__u64)rule->cfa_offset;

	if (rule->cfa != UNWIND_CFA_SP || rule->cfa_offset < 0 ||
	    rule->saved != UNWIND_SAVED(UNWIND_RA_REGISTER, UNWIND_FP_SAME))
		return UNWIND_END_BAD_RULE;
	if (f->link == 0 || !unwind_on_stack(f, sp))
		return UNWIND_END_NO_CALLER;
	unwind_enter(f, f->link, sp, f->fp);
	return UNWIND_END_NONE;
}

/*
 * Returns 1 if `pc` points to the code that a signal handler returns to, which calls
 * rt_sigreturn(2).
 */
static __attribute__((always_inline)) inline __u32 unwind_sigreturn_at(__u64 pc)
{
	__u64 first, last;

	return unwind_read(&first, sizeof(first), pc) == 0 &&
	       unwind_read(&last, sizeof(last), pc + 1) == 0 && first == UNWIND_SIGRETURN &&
	       last == UNWIND_SIGRETURN_1;
}

/*
 * As unwind_sigreturn_at, for a `pc` at the begin of that code, at its system call, or after the
 * system call instruction while the call runs.
 */
static __attribute__((always_inline)) inline __u32 unwind_is_sigreturn(__u64 pc)
{
	return unwind_sigreturn_at(pc) || unwind_sigreturn_at(pc - 7) ||
	       unwind_sigreturn_at(pc - 9);
}

/*
 * Steps `f` to the frame that a signal interrupted, by the registers that the kernel saved at the
 * handler's stack pointer. The rule only claims that this is a signal frame, so the code must be
 * that of a signal frame too. The handler ran on the interrupted stack or on its alternate stack.
 * In the second case the interrupted stack must be one that the kernel knows, because the place of
 * its stack pointer could contain any word.
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
	unwind_enter(f, pc, sp, fp);
	f->exact = 1;
	f->fp_lost = 0;
	f->signals++;
	return UNWIND_END_NONE;
}

/*
 * Steps `f` to its caller by `rule`. Returns UNWIND_END_NONE, or the reason why there is no caller;
 * in that case only the stack copy of *f has changed. For any rule the guarantees of every ABI must
 * hold: frames ascend on one stack, and a frame's saved registers are inside it.
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
	unwind_enter(f, pc, sp, fp);
	f->fp_lost = fp_lost;
	return UNWIND_END_NONE;
}

/*
 * As unwind_apply, for the kind of rule that nearly all frames have: the CFA is an offset from a
 * register, the return address is below it, and the frame pointer is unchanged or is stored there
 * too. Returns 1. For all other rules returns 0, and has changed only the stack copy.
 */
static __attribute__((always_inline)) inline __u32
unwind_apply_plain(struct unwind_frame *f, const struct unwind_rule *rule)
{
	__u8 kind = UNWIND_SAVED_FP(rule->saved);
	__u64 base = f->sp, cfa, pc, fp, at;

	if (rule->saved & ~UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_CFA))
		return 0;
	if ((rule->cfa == UNWIND_CFA_FP || rule->cfa == UNWIND_CFA_POINTER_OWN) && !f->fp_lost &&
	    unwind_on_stack(f, f->fp))
		base = f->fp;
	else if (rule->cfa != UNWIND_CFA_SP)
		return 0;
	cfa = base + (__s64)rule->cfa_offset;
	if (cfa == f->sp || !unwind_on_stack(f, cfa) ||
	    unwind_read_saved(f, cfa - UNWIND_WORD, cfa, &pc) != 0)
		return 0;
	at = cfa + (__s64)rule->fp_offset;
	if (kind == UNWIND_FP_CFA && at >= f->sp && at < cfa) {
		if (unwind_read_saved(f, at, cfa, &fp) != 0)
			return 0;
		f->fp = fp;
		f->fp_lost = 0;
	}
	unwind_enter(f, pc, cfa, f->fp);
	return 1;
}

/*
 * Returns the rule for `f` from the table at `place`, with rows relative to `base`: the address at
 * which the table's base is mapped in the process. A call may be the last instruction of its
 * function, and its return address then belongs to the next function: so the byte before it is
 * looked up. The rule is a copy, because the consumer may write the table at any time.
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

/* Steps `f` to its caller by the table at `place`, like unwind_apply. */
static __attribute__((always_inline)) inline enum unwind_end
unwind_step(struct unwind_frame *f, const struct unwind_place *place, __u64 base)
{
	struct unwind_rule rule = unwind_rule_of(f, place, base);

	return unwind_apply(f, &rule);
}

/* A return address without the authentication code that arm64 may store in its upper bits. */
#if defined(__TARGET_ARCH_arm64)
#define UNWIND_CODE(pc) ((pc) & ((1ull << 48) - 1))
#else
#define UNWIND_CODE(pc) (pc)
#endif

/*
 * Steps `f` to its caller by the frame pointer, in code that has no rows and keeps a frame pointer.
 */
static __attribute__((always_inline)) inline enum unwind_end unwind_step_fp(struct unwind_frame *f)
{
	__u64 at = f->fp, fp, pc;

	if (f->fp_lost)
		return UNWIND_END_FRAME_POINTER;
	if (unwind_read_saved(f, at, f->top, &fp) != 0 ||
	    unwind_read_saved(f, at + UNWIND_WORD, f->top, &pc) != 0)
		return UNWIND_END_NO_CALLER;
	unwind_enter(f, UNWIND_CODE(pc), at + 2 * UNWIND_WORD, fp);
	return UNWIND_END_NONE;
}

#endif
