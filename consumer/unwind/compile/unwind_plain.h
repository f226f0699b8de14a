/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_plain.h: runs the instructions of one function and makes its rows, as cfi_program.h and
 * cfi_rule.h do, for what nearly all functions have: the frame address is an offset from sp or fp,
 * the return address lies at CFA - 8, fp is unchanged or saved in the frame. The state is then a
 * rule all the time, and a step costs a few instructions. Whatever else it meets it leaves to them.
 */
#ifndef TROCAR_CONSUMER_UNWIND_PLAIN_H
#define TROCAR_CONSUMER_UNWIND_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/unwind/compile/cfi_program.h"
#include "consumer/unwind/compile/unwind_rules.h"
#include "consumer/unwind/compile/unwind_table.h"

/* What a CIE says, as far as it is needed here. */
struct unwind_plain {
	struct unwind_rule initial; /* the state behind its instructions */
	int32_t data_align;
};

/* False: functions of this CIE are not for unwind_plain_run. `initial` is the state behind its
 * instructions.
 */
bool unwind_plain_of(const struct cfi_cie *cie, const struct cfi_state *initial,
		     struct unwind_plain *ret_plain);

/* One function: the instructions `code`, for text from `start` to before `end` (less the table's
 * base), which is above it.
 */
struct unwind_plain_text {
	struct cfi_bytes code;
	uint32_t start, end;
};

/*
 * Appends the function's rows to `table`, its rules to `rules` (at most `limit` in all). 1: done.
 * 0: it is not plain; no row was appended, and rules only that the whole run will need as well.
 * Either way *steps has grown by the bytes of instructions run. -ENOSPC, -ENOMEM as
 * unwind_rules_add and unwind_table_grow.
 */
int unwind_plain_run(const struct unwind_plain *plain, const struct unwind_plain_text *text,
		     struct unwind_rules *rules, uint32_t limit, struct unwind_table *table,
		     uint64_t *steps);

#endif
