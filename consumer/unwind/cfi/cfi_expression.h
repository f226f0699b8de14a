/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi_expression.h: recognises the expressions that call frame information contains in practice. It
 * does not evaluate them, because there are no register values: it turns each into a form that a
 * rule can describe, or refuses it. Source: DWARF 5 section 7.7.1.
 */
#ifndef TROCAR_CONSUMER_UNWIND_CFI_CFI_EXPRESSION_H
#define TROCAR_CONSUMER_UNWIND_CFI_CFI_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_EXPRESSION_MAX 64 /* bytes; it is read again for each row */

enum cfi_base {
	CFI_BASE_NUMBER, /* no register */
	CFI_BASE_FP,
	CFI_BASE_SP,
	CFI_BASE_CFA,
};

/* The value base + a, or with `memory` the value *(base + a) + b. */
struct cfi_value {
	enum cfi_base base;
	bool memory;
	int64_t a, b;
};

/*
 * Turns an expression into a form. `with_cfa`: the CFA is on the stack at the start, as for a
 * register's expression. Returns false if the expression is malformed, too long or of another form.
 */
bool cfi_expression_value(const uint8_t *expression, size_t bytes, bool with_cfa,
			  struct cfi_value *ret_value);

/*
 * Recognises the expressions that linkers write for procedure linkage tables: sp + *ret_base, and 8
 * more from byte *ret_limit of a 16-byte slot on, after the slot has pushed its number (binutils,
 * bfd/elfxx-x86.c). Returns false for any other expression.
 */
bool cfi_expression_plt(const uint8_t *expression, size_t bytes, int64_t *ret_base,
			uint8_t *ret_limit);

#endif
