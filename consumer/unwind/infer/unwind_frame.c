/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/infer/unwind_frame.h"

#include <assert.h>

#define FRAME_MAX (1 << 24) /* bytes of a frame */

static_assert(sizeof(struct unwind_frame) == 16, "no padding: they are compared as bytes");

enum fp_state {
	FP_IS_CALLERS,
	FP_SAVED,
	FP_GONE,
};

static void lose_frame(struct unwind_frame *f, enum unwind_frame_kind kind)
{
	*f = (struct unwind_frame){ .kind = (uint8_t)kind };
}

static void move_sp(struct unwind_frame *f, int64_t by)
{
	int64_t sp = f->sp - by;

	if (!f->sp_known)
		return;
	f->sp = (int32_t)sp;
	if (sp < 0 || sp > FRAME_MAX)
		lose_frame(f, UNWIND_FRAME_LOST);
	else if (sp < UNWIND_FRAME_ENTRY)
		lose_frame(f, UNWIND_FRAME_END); /* it dropped its own return address */
}

static void forget_sp(struct unwind_frame *f)
{
	f->sp_known = 0;
	f->sp = 0;
	if (!f->fp_known)
		lose_frame(f, UNWIND_FRAME_LOST);
}

/* Records that fp is overwritten; `back`: it has the caller's value again. */
static void write_fp(struct unwind_frame *f, bool back)
{
	f->fp_known = 0;
	f->base = 0;
	if (back)
		f->fp = FP_IS_CALLERS;
	else if (f->fp == FP_IS_CALLERS)
		f->fp = FP_GONE;
	if (f->fp != FP_SAVED)
		f->saved = 0;
	if (!f->sp_known)
		lose_frame(f, UNWIND_FRAME_LOST);
}

static void save_fp(struct unwind_frame *f, int64_t from_sp)
{
	if (f->fp != FP_IS_CALLERS || f->fp_known || !f->sp_known)
		return;
	f->fp = FP_SAVED;
	f->saved = (int32_t)(from_sp - f->sp);
}

static void load_fp(struct unwind_frame *f, int64_t from_sp)
{
	write_fp(f, f->fp == FP_SAVED && f->sp_known && f->saved == (int32_t)(from_sp - f->sp));
}

static void point_fp(struct unwind_frame *f, int64_t from_sp)
{
	if (f->fp == FP_IS_CALLERS)
		f->fp = FP_GONE;
	f->fp_known = f->sp_known;
	f->base = f->sp_known ? (int32_t)(f->sp - from_sp) : 0;
	if (!f->sp_known)
		lose_frame(f, UNWIND_FRAME_LOST);
}

static void sp_from_fp(struct unwind_frame *f, int64_t from_fp)
{
	if (!f->fp_known) {
		lose_frame(f, UNWIND_FRAME_LOST);
		return;
	}
	f->sp_known = 1;
	f->sp = f->base;
	move_sp(f, from_fp);
}

static void pop_fp(struct unwind_frame *f)
{
	if (f->kind != UNWIND_FRAME_NORMAL)
		return;
	load_fp(f, 0);
	move_sp(f, 8);
}

void unwind_frame_apply(struct unwind_frame *f, const struct x86_insn *insn)
{
	if (f->kind != UNWIND_FRAME_NORMAL || insn->value > FRAME_MAX || insn->value < -FRAME_MAX) {
		if (f->kind == UNWIND_FRAME_NORMAL && insn->effect != X86_NONE)
			lose_frame(f, UNWIND_FRAME_LOST);
		return;
	}
	switch (insn->effect) {
	case X86_SP_ADD:
		move_sp(f, insn->value);
		break;
	case X86_SP_FROM_FP:
		sp_from_fp(f, insn->value);
		break;
	case X86_SP_LOST:
		forget_sp(f);
		break;
	case X86_FP_FROM_SP:
		point_fp(f, insn->value);
		break;
	case X86_FP_PUSH:
		save_fp(f, -8);
		move_sp(f, -8);
		break;
	case X86_LEAVE:
		sp_from_fp(f, 0);
		pop_fp(f);
		break;
	case X86_FP_POP:
		pop_fp(f);
		break;
	case X86_FP_STORE:
		save_fp(f, insn->value);
		break;
	case X86_FP_LOAD:
		load_fp(f, insn->value);
		break;
	case X86_FP_LOST:
		write_fp(f, false);
		break;
	default:
		break;
	}
}

bool unwind_frame_entry(const struct unwind_frame *f)
{
	return f->kind != UNWIND_FRAME_NORMAL ||
	       (f->sp_known && f->sp == UNWIND_FRAME_ENTRY && f->fp != FP_SAVED);
}

struct unwind_rule unwind_frame_rule(const struct unwind_frame *f)
{
	struct unwind_rule rule = { 0 };

	if (f->kind == UNWIND_FRAME_LOST || f->kind == UNWIND_FRAME_END) {
		rule.cfa = f->kind == UNWIND_FRAME_LOST ? UNWIND_CFA_UNSUPPORTED : UNWIND_CFA_END;
		return rule;
	}
	if (f->kind ==
	    UNWIND_FRAME_SIGNAL) { /* struct rt_sigframe: rbp, rsp and rip in uc_mcontext */
		rule.cfa = UNWIND_CFA_SP_MEMORY;
		rule.cfa_offset = UNWIND_HALVES(160, 0);
		rule.fp_offset = 120;
		rule.saved = UNWIND_SAVED(UNWIND_RA_CONTEXT, UNWIND_FP_SP) | UNWIND_SAVED_EXACT;
		return rule;
	}
	rule.cfa = f->sp_known ? UNWIND_CFA_SP : UNWIND_CFA_FP;
	rule.cfa_offset = f->sp_known ? f->sp : f->base;
	rule.saved = UNWIND_SAVED(UNWIND_RA_CFA, f->fp == FP_IS_CALLERS ? UNWIND_FP_SAME
						 : f->fp == FP_SAVED	? UNWIND_FP_CFA
									: UNWIND_FP_UNKNOWN);
	if (f->fp == FP_SAVED && f->saved == (int16_t)f->saved)
		rule.fp_offset = (int16_t)f->saved;
	else if (f->fp == FP_SAVED)
		rule.saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_UNKNOWN);
	return rule;
}
