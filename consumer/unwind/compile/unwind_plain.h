/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_plain.h: runs the instructions of one function and makes its rows, as cfi_program.h and
 * cfi_rule.h do, for the instructions of nearly all functions: the frame address is an offset from
 * sp or fp, the return address is at CFA - 8, and fp is unchanged or saved in the frame. The state
 * is then always a rule, and a step costs a few machine instructions. It refuses any other
 * function, which the caller passes to cfi_program.h and cfi_rule.h.
 */
#ifndef TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_PLAIN_H
#define TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/unwind/cfi/cfi_program.h"
#include "consumer/unwind/compile/unwind_rules.h"
#include "consumer/unwind/compile/unwind_table.h"

/* The parts of a CIE that the functions below need. */
struct unwind_plain {
	struct unwind_rule initial; /* the state after its instructions */
	int32_t data_align;
};

/*
 * Returns whether unwind_plain_run may run functions of this CIE; sets *ret_plain. `initial` is the
 * state after its instructions.
 */
bool unwind_plain_of(const struct cfi_cie *cie, const struct cfi_state *initial,
		     struct unwind_plain *ret_plain);

/*
 * One function: its instructions `code`, for text from `start` to before `end`, which is above
 * `start`; both are minus the table's base.
 */
struct unwind_plain_text {
	struct cfi_bytes code;
	uint32_t start, end;
};

/*
 * Appends the function's rows to `table` and its rules to `rules` (at most `limit` in all). Returns
 * 1: done. Returns 0: the function is not plain; no row was appended, and the full run will need
 * the rules that were added. In both cases adds the bytes of instructions run to *steps. Returns
 * -ENOSPC, -ENOMEM as unwind_rules_add and unwind_table_grow.
 */
int unwind_plain_run(const struct unwind_plain *plain, const struct unwind_plain_text *text,
		     struct unwind_rules *rules, uint32_t limit, struct unwind_table *table,
		     uint64_t *steps);

#endif
