/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind.h: from one frame of a user stack to its caller's, by the tables of shared/unwind_abi.h.
 * The tables are the consumer's and may be wrong: every number of theirs only chooses which element
 * is looked up or which address of the current process is read, both of which can fail, and no loop
 * runs longer than is written here. It compiles for the host as well, where it is tested and
 * fuzzed: with UNWIND_HOST the includer has defined unwind_element, unwind_rule_at and unwind_read.
 */
#ifndef TROCAR_BPF_UNWIND_H
#define TROCAR_BPF_UNWIND_H

#include "bpf/unwind_stack.h"
#include "shared/unwind_abi.h"

/* One frame of the stack, as far as its caller is found by it. */
struct unwind_frame {
	__u64 pc, sp, fp;
	__u64 link;		   /* the register of UNWIND_RA_REGISTER; 0: not known, no leaf */
	__u32 exact;		   /* pc is what runs next there, not where a call returns to */
	__u32 fp_lost;		   /* fp is not this frame's */
	struct unwind_stack stack; /* not of the frame, but of the walk */
};

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

/* The caller's stack pointer. Not to be asked for a rule without one. */
static __attribute__((always_inline)) inline enum unwind_end
unwind_cfa(struct unwind_frame *f, const struct unwind_rule *rule, __u64 *ret_cfa)
{
	__s32 offset = rule->cfa_offset;
	__u8 kind = rule->cfa;
	__u64 base = f->sp;

	if (kind == UNWIND_CFA_FP || kind == UNWIND_CFA_FP_MEMORY) {
		if (f->fp_lost)
			return UNWIND_END_FRAME_POINTER;
		base = f->fp;
	}
	if (kind == UNWIND_CFA_SP || kind == UNWIND_CFA_FP) {
		*ret_cfa = base + (__s64)offset;
		return UNWIND_END_NONE;
	}
	base += (__s64)UNWIND_LOW(offset);
	if (kind == UNWIND_CFA_PLT) {
		*ret_cfa = base + ((__s16)(f->pc & 15) >= UNWIND_HIGH(offset) ? UNWIND_WORD : 0);
		return UNWIND_END_NONE;
	}
	if (unwind_word(&f->stack, base, ret_cfa) != 0)
		return UNWIND_END_READ_FAULT;
	*ret_cfa += (__s64)UNWIND_HIGH(offset);
	return UNWIND_END_NONE;
}

/* The caller's frame pointer; *ret_lost when no rule can say it. */
static __attribute__((always_inline)) inline enum unwind_end
unwind_fp(struct unwind_frame *f, const struct unwind_rule *rule, __u64 cfa, __u64 *ret_fp,
	  __u32 *ret_lost)
{
	__u8 kind = UNWIND_SAVED_FP(rule->saved);
	__u64 base = cfa;

	*ret_fp = f->fp;
	*ret_lost = f->fp_lost;
	if (kind == UNWIND_FP_SAME)
		return UNWIND_END_NONE;
	*ret_lost = 1;
	if (kind >= UNWIND_FP_UNKNOWN || (kind == UNWIND_FP_FP && f->fp_lost))
		return UNWIND_END_NONE;
	if (kind == UNWIND_FP_FP)
		base = f->fp;
	else if (kind == UNWIND_FP_SP)
		base = f->sp;
	*ret_lost = 0;
	if (unwind_word(&f->stack, base + (__s64)rule->fp_offset, ret_fp) != 0)
		return UNWIND_END_READ_FAULT;
	return UNWIND_END_NONE;
}

/* Where in memory the return address is kept; 0 where no rule of x86-64 keeps it. */
static __attribute__((always_inline)) inline __u64
unwind_ra_address(const struct unwind_frame *f, const struct unwind_rule *rule, __u64 cfa)
{
	switch (UNWIND_SAVED_RA(rule->saved)) {
	case UNWIND_RA_CFA:
		return cfa - UNWIND_WORD;
	case UNWIND_RA_CONTEXT:
		return f->sp + (__s64)UNWIND_LOW(rule->cfa_offset) + UNWIND_WORD;
	case UNWIND_RA_ALONE:
		return cfa + (__s64)rule->fp_offset;
	default:
		return 0;
	}
}

/* The caller of a leaf that has its return address in a register: its frame may have no bytes. */
static __attribute__((always_inline)) inline enum unwind_end
unwind_apply_link(struct unwind_frame *f, const struct unwind_rule *rule)
{
	if (f->link == 0 || rule->cfa != UNWIND_CFA_SP || rule->cfa_offset < 0 ||
	    rule->saved != UNWIND_SAVED(UNWIND_RA_REGISTER, UNWIND_FP_SAME))
		return UNWIND_END_BAD_RULE;
	f->pc = f->link;
	f->sp += (__u64)rule->cfa_offset;
	f->link = 0;
	f->exact = 0;
	return UNWIND_END_NONE;
}

/*
 * Makes `f` its caller by `rule`. UNWIND_END_NONE, or why there is none: then *f is as before, but
 * for its piece of the stack. A signal frame may lie on a stack of its own, so only of the others
 * is it asked that frames ascend.
 */
static __attribute__((always_inline)) inline enum unwind_end
unwind_apply(struct unwind_frame *f, const struct unwind_rule *rule)
{
	__u32 exact = (rule->saved & UNWIND_SAVED_EXACT) != 0, fp_lost;
	__u64 pc, sp, fp, at;
	enum unwind_end end;

	if (rule->cfa == UNWIND_CFA_END)
		return UNWIND_END_COMPLETE;
	if (rule->cfa == UNWIND_CFA_NONE)
		return UNWIND_END_NO_ROW;
	if (rule->cfa < UNWIND_CFA_SP || rule->cfa > UNWIND_CFA_PLT)
		return UNWIND_END_BAD_RULE;
	if (UNWIND_SAVED_RA(rule->saved) == UNWIND_RA_REGISTER)
		return unwind_apply_link(f, rule);
	end = unwind_cfa(f, rule, &sp);
	if (end != UNWIND_END_NONE)
		return end;
	if (sp <= f->sp && !exact)
		return UNWIND_END_BACKWARDS;
	at = unwind_ra_address(f, rule, sp);
	if (at == 0)
		return UNWIND_END_BAD_RULE;
	if (unwind_word(&f->stack, at, &pc) != 0)
		return UNWIND_END_READ_FAULT;
	if (pc == 0)
		return UNWIND_END_COMPLETE;
	end = unwind_fp(f, rule, sp, &fp, &fp_lost);
	if (end != UNWIND_END_NONE)
		return end;
	f->pc = pc;
	f->sp = sp;
	f->fp = fp;
	f->link = 0;
	f->exact = exact;
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

/* Makes `f` its caller by the frame pointer, as code without rows that keeps it allows. */
static __attribute__((always_inline)) inline enum unwind_end unwind_step_fp(struct unwind_frame *f)
{
	__u64 fp, pc;

	if (f->fp_lost)
		return UNWIND_END_FRAME_POINTER;
	if (f->fp == 0)
		return UNWIND_END_COMPLETE;
	if (f->fp < f->sp)
		return UNWIND_END_BACKWARDS;
	if (unwind_word(&f->stack, f->fp, &fp) != 0 ||
	    unwind_word(&f->stack, f->fp + UNWIND_WORD, &pc) != 0)
		return UNWIND_END_READ_FAULT;
	if (pc == 0)
		return UNWIND_END_COMPLETE;
	f->pc = pc;
	f->sp = f->fp + 2 * UNWIND_WORD;
	f->fp = fp;
	f->link = 0;
	f->exact = 0;
	return UNWIND_END_NONE;
}

#endif
