/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi_expression.h: understands the expressions that call frame information has in practice. They
 * are not evaluated, for there are no registers yet: each is brought into a form that a rule can
 * say, or refused. Source: DWARF 5 section 7.7.1.
 */
#ifndef TROCAR_CONSUMER_CFI_EXPRESSION_H
#define TROCAR_CONSUMER_CFI_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_EXPRESSION_MAX 64 /* bytes; it is read again for every row that it holds for */

enum cfi_base {
	CFI_BASE_NUMBER, /* none */
	CFI_BASE_FP,
	CFI_BASE_SP,
	CFI_BASE_CFA,
};

/* base + a, or, when `memory` is set, *(base + a) + b. */
struct cfi_value {
	enum cfi_base base;
	bool memory;
	int64_t a, b;
};

/*
 * The value of an expression, as a form. `with_cfa`: the CFA stands on the stack at the start, as
 * it does for registers. False when the expression is broken, too long or of another form.
 */
bool cfi_expression_value(const uint8_t *expression, size_t bytes, bool with_cfa,
			  struct cfi_value *ret_value);

/*
 * Recognizes what linkers write for procedure linkage tables: sp + *ret_base, and 8 more from byte
 * *ret_limit of a 16-byte slot on, where the slot has pushed its number (binutils,
 * bfd/elfxx-x86.c). False for any other expression.
 */
bool cfi_expression_plt(const uint8_t *expression, size_t bytes, int64_t *ret_base,
			uint8_t *ret_limit);

#endif
