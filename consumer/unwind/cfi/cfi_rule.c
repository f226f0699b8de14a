/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/cfi/cfi_rule.h"

#include "consumer/unwind/cfi/cfi_expression.h"

/*
 * The two shapes that the CFA's expression may have; `memory` with base sp is the CFA of a signal
 * frame.
 */
struct cfa {
	enum unwind_cfa kind;
	int64_t low, high; /* for kinds with two halves; else `low` is the offset */
};

static bool fits_int16(int64_t n)
{
	return n >= INT16_MIN && n <= INT16_MAX;
}

static enum cfi_loss cfa_of_value(const struct cfi_value *v, struct cfa *ret)
{
	if (v->base != CFI_BASE_SP && v->base != CFI_BASE_FP)
		return CFI_LOSS_CFA_EXPRESSION;
	*ret = (struct cfa){ .low = v->a, .high = v->b };
	if (v->memory)
		ret->kind = v->base == CFI_BASE_SP ? UNWIND_CFA_SP_MEMORY : UNWIND_CFA_FP_MEMORY;
	else
		ret->kind = v->base == CFI_BASE_SP ? UNWIND_CFA_SP : UNWIND_CFA_FP;
	return CFI_LOSS_NONE;
}

static enum cfi_loss cfa_of_expression(const struct cfi_place *place, struct cfa *ret)
{
	struct cfi_value value;
	uint8_t limit;
	int64_t base;

	if (cfi_expression_plt(place->expression, place->expression_bytes, &base, &limit)) {
		*ret = (struct cfa){ .kind = UNWIND_CFA_PLT, .low = base, .high = limit };
		return CFI_LOSS_NONE;
	}
	if (!cfi_expression_value(place->expression, place->expression_bytes, false, &value))
		return CFI_LOSS_CFA_EXPRESSION;
	return cfa_of_value(&value, ret);
}

static enum cfi_loss cfa_of(const struct cfi_state *s, struct cfa *ret)
{
	switch (s->cfa.kind) {
	case CFI_OFFSET:
		if (s->cfa_register != CFI_SP && s->cfa_register != CFI_FP)
			return CFI_LOSS_CFA_REGISTER;
		*ret = (struct cfa){ .kind = s->cfa_register == CFI_SP ? UNWIND_CFA_SP
								       : UNWIND_CFA_FP,
				     .low = s->cfa.offset };
		return CFI_LOSS_NONE;
	case CFI_EXPRESSION:
		return cfa_of_expression(&s->cfa, ret);
	default:
		return CFI_LOSS_BAD_PROGRAM; /* the program does not define the CFA */
	}
}

static enum cfi_loss pack_cfa(const struct cfa *cfa, struct unwind_rule *rule)
{
	rule->cfa = (uint8_t)cfa->kind;
	if (cfa->kind == UNWIND_CFA_SP || cfa->kind == UNWIND_CFA_FP) {
		if (cfa->low < INT32_MIN || cfa->low > INT32_MAX)
			return CFI_LOSS_CFA_RANGE;
		rule->cfa_offset = (int32_t)cfa->low;
		return CFI_LOSS_NONE;
	}
	if (!fits_int16(cfa->low) || !fits_int16(cfa->high))
		return CFI_LOSS_CFA_RANGE;
	rule->cfa_offset = UNWIND_HALVES(cfa->low, cfa->high);
	return CFI_LOSS_NONE;
}

/* Finds where in memory a register was saved, as base + a; false when it is not in memory. */
static bool saved_at(const struct cfi_place *place, struct cfi_value *ret)
{
	struct cfi_value v = { .base = CFI_BASE_CFA, .a = place->offset };

	if (place->kind == CFI_OFFSET) {
		*ret = v;
		return true;
	}
	if (place->kind != CFI_EXPRESSION && place->kind != CFI_VALUE_EXPRESSION)
		return false;
	if (!cfi_expression_value(place->expression, place->expression_bytes, true, &v))
		return false;
	/* A register with the value *(base + a) was saved at base + a. */
	if (v.memory != (place->kind == CFI_VALUE_EXPRESSION) || v.b != 0)
		return false;
	*ret = v;
	return true;
}

/* Whether `v` is `behind` bytes after the word where a signal frame saves the CFA. */
static bool in_context(const struct cfa *cfa, const struct cfi_value *v, int64_t behind)
{
	return cfa->kind == UNWIND_CFA_SP_MEMORY && cfa->high == 0 && v->base == CFI_BASE_SP &&
	       (uint64_t)v->a == (uint64_t)cfa->low + (uint64_t)behind;
}

/* Whether the caller's stack pointer is the CFA: a rule can describe nothing else. */
static bool sp_is_cfa(const struct cfi_state *s, const struct cfa *cfa)
{
	struct cfi_value v;

	if (s->sp.kind == CFI_UNSET || (s->sp.kind == CFI_VALUE_OFFSET && s->sp.offset == 0))
		return true;
	return saved_at(&s->sp, &v) && in_context(cfa, &v, 0);
}

static enum cfi_loss fp_of(const struct cfi_state *s, enum unwind_fp *ret_fp, int16_t *ret_offset)
{
	struct cfi_value v;

	*ret_fp = UNWIND_FP_SAME;
	if (s->fp.kind == CFI_UNSET || s->fp.kind == CFI_SAME ||
	    (s->fp.kind == CFI_REGISTER && s->fp.reg == CFI_FP))
		return CFI_LOSS_NONE;
	*ret_fp = UNWIND_FP_UNKNOWN;
	if (s->fp.kind == CFI_UNDEFINED)
		return CFI_LOSS_NONE; /* the file itself declares it lost */
	if (!saved_at(&s->fp, &v) || !fits_int16(v.a) || v.base == CFI_BASE_NUMBER)
		return CFI_LOSS_FRAME_POINTER;
	*ret_fp = v.base == CFI_BASE_CFA  ? UNWIND_FP_CFA
		  : v.base == CFI_BASE_FP ? UNWIND_FP_FP
					  : UNWIND_FP_SP;
	*ret_offset = (int16_t)v.a;
	return CFI_LOSS_NONE;
}

/*
 * Finds where the return address is. At an unusual place a rule can only combine it with an
 * unchanged frame pointer. Of the registers, the kernel side keeps the one that holds the return
 * address in the C library's vfork, where the child has changed the stack.
 */
static bool ra_of(const struct cfi_state *s, const struct cfa *cfa, enum unwind_fp fp,
		  enum unwind_ra *ret_ra, int16_t *offset)
{
	struct cfi_value v;

	if (s->pc.kind == CFI_REGISTER && s->pc.reg == CFI_LINK) {
		*ret_ra = UNWIND_RA_REGISTER;
		return cfa->kind == UNWIND_CFA_SP && cfa->low >= 0 && fp == UNWIND_FP_SAME;
	}
	if (!saved_at(&s->pc, &v))
		return false;
	if (v.base == CFI_BASE_CFA && v.a == -8) {
		*ret_ra = UNWIND_RA_CFA;
		return true;
	}
	if (in_context(cfa, &v, 8)) {
		*ret_ra = UNWIND_RA_CONTEXT;
		return true;
	}
	if (v.base != CFI_BASE_CFA || fp != UNWIND_FP_SAME || !fits_int16(v.a))
		return false;
	*ret_ra = UNWIND_RA_ALONE;
	*offset = (int16_t)v.a;
	return true;
}

enum cfi_loss cfi_rule_of(const struct cfi_state *s, bool signal, struct unwind_rule *ret_rule)
{
	struct unwind_rule rule = { 0 };
	enum cfi_loss loss, part;
	enum unwind_fp fp;
	enum unwind_ra ra;
	struct cfa cfa;

	if (s->pc.kind == CFI_UNDEFINED) {
		*ret_rule = (struct unwind_rule){ .cfa = UNWIND_CFA_END };
		return CFI_LOSS_NONE;
	}
	loss = cfa_of(s, &cfa);
	if (loss == CFI_LOSS_NONE)
		loss = pack_cfa(&cfa, &rule);
	if (loss != CFI_LOSS_NONE)
		return loss;
	if (!sp_is_cfa(s, &cfa))
		return CFI_LOSS_STACK_POINTER;
	part = fp_of(s, &fp, &rule.fp_offset);
	if (!ra_of(s, &cfa, fp, &ra, &rule.fp_offset) || (signal && ra == UNWIND_RA_REGISTER))
		return CFI_LOSS_RETURN_ADDRESS;
	rule.saved = UNWIND_SAVED(ra, fp) | (signal ? UNWIND_SAVED_EXACT : 0);
	*ret_rule = rule;
	return part;
}
