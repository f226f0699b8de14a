/* SPDX-License-Identifier: BSD-2-Clause */
/* cfi_rule.h: makes the rule of shared/abi/unwind_abi.h that describes a state. */
#ifndef TROCAR_CONSUMER_UNWIND_CFI_CFI_RULE_H
#define TROCAR_CONSUMER_UNWIND_CFI_CFI_RULE_H

#include "consumer/unwind/cfi/cfi_loss.h"
#include "consumer/unwind/cfi/cfi_program.h"
#include "shared/abi/unwind_abi.h"

/*
 * Makes the rule for a state; `signal`: its frame is a signal frame. Returns CFI_LOSS_NONE with the
 * rule, or CFI_LOSS_FRAME_POINTER with a rule that has UNWIND_FP_UNKNOWN. On any other loss the
 * state needs UNWIND_RULE_UNSUPPORTED, and *ret_rule is not set. An undefined return address gives
 * the rule UNWIND_RULE_END, regardless of the rest of the state.
 */
enum cfi_loss cfi_rule_of(const struct cfi_state *state, bool signal, struct unwind_rule *ret_rule);

/*
 * Does the same as cfi_rule_of for nearly all states: not a signal frame, and no special cases.
 * Returns false otherwise: call cfi_rule_of. Inline, because it is called for every row.
 */
static inline bool cfi_rule_plain(const struct cfi_state *s, struct unwind_rule *ret_rule)
{
	struct unwind_rule rule = { .saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_SAME) };

	if (s->cfa.kind != CFI_OFFSET || s->cfa.offset != (int32_t)s->cfa.offset ||
	    s->pc.kind != CFI_OFFSET || s->pc.offset != -8 || s->sp.kind != CFI_UNSET)
		return false;
	if (s->cfa_register != CFI_SP && s->cfa_register != CFI_FP)
		return false;
	rule.cfa = s->cfa_register == CFI_SP ? UNWIND_CFA_SP : UNWIND_CFA_FP;
	rule.cfa_offset = (int32_t)s->cfa.offset;
	if (s->fp.kind == CFI_OFFSET && s->fp.offset == (int16_t)s->fp.offset) {
		rule.saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_CFA);
		rule.fp_offset = (int16_t)s->fp.offset;
	} else if (s->fp.kind != CFI_UNSET) {
		return false;
	}
	*ret_rule = rule;
	return true;
}

#endif
