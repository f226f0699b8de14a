/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_plain_testing.h: unwind_plain_run against its reference: the same instructions by
 * cfi_program_next and cfi_rule_of. Shared with the fuzz target.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_UNWIND_PLAIN_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_UNWIND_PLAIN_TESTING_H

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/unwind/cfi/cfi_rule.h"
#include "consumer/unwind/compile/unwind_plain.h"

/* Rows by the whole runner. False when it meets an instruction that no plain function has. */
static inline bool whole_run(const struct cfi_cie *cie, const struct cfi_state *initial,
			     const struct unwind_plain_text *text, struct unwind_rules *rules,
			     struct unwind_table *table)
{
	static const struct cfi_section nothing;
	static struct cfi_program p;
	struct unwind_rule rule;
	uint16_t index;
	int more;

	cfi_program_start(&p, &nothing, cie, initial, text->code, text->start);
	do {
		more = cfi_program_next(&p);
		if (more < 0 || cfi_rule_of(&p.state, false, &rule) != CFI_LOSS_NONE)
			return false;
		if (unwind_rules_add(rules, rule, UNWIND_RULES_MAX, &index) < 0 ||
		    unwind_table_push(table, (uint32_t)p.from, index) < 0)
			abort();
	} while (more && p.to < text->end);
	return true;
}

/* The contents of a CIE of x86-64, with `data_align`. */
static inline void whole_cie(int64_t data_align, struct cfi_cie *ret_cie,
			     struct cfi_state *ret_initial)
{
	*ret_cie = (struct cfi_cie){ .code_align = 1, .data_align = data_align };
	*ret_initial = (struct cfi_state){
		.cfa = { .kind = CFI_OFFSET, .offset = 8 },
		.cfa_register = CFI_SP,
		.pc = { .kind = CFI_OFFSET, .offset = -8 },
	};
}

/*
 * Runs `code` for the text from `start` to before `end` both ways. What unwind_plain_run answers;
 * that its rows and rules are the same is asserted.
 */
static inline int whole_compare(int64_t data_align, struct cfi_bytes code, uint32_t start,
				uint32_t end)
{
	struct unwind_plain_text text = { .code = code, .start = start, .end = end };
	struct unwind_table quick = { 0 }, slow = { 0 };
	struct unwind_rules quick_rules, slow_rules;
	struct unwind_plain plain;
	struct cfi_state initial;
	struct cfi_cie cie;
	uint64_t steps = 0;
	int r = 0;

	whole_cie(data_align, &cie, &initial);
	if (!unwind_plain_of(&cie, &initial, &plain))
		return 0;
	if (unwind_rules_init(&quick_rules) < 0 || unwind_rules_init(&slow_rules) < 0)
		abort();
	if (start > 0 &&
	    (unwind_table_push(&quick, 0, 0) < 0 || unwind_table_push(&slow, 0, 0) < 0))
		abort();
	r = unwind_plain_run(&plain, &text, &quick_rules, UNWIND_RULES_MAX, &quick, &steps);
	assert(r >= 0 && steps <= cfi_bytes_left(&code));
	if (r == 1) {
		assert(whole_run(&cie, &initial, &text, &slow_rules, &slow));
		assert(quick.row_count == slow.row_count && quick_rules.count == slow_rules.count);
		assert(memcmp(quick.rows, slow.rows, slow.row_count * sizeof(*slow.rows)) == 0);
		assert(memcmp(quick_rules.rules, slow_rules.rules,
			      slow_rules.count * sizeof(*slow_rules.rules)) == 0);
	} else {
		assert(quick.row_count == (start > 0));
	}
	unwind_table_done(&quick);
	unwind_table_done(&slow);
	unwind_rules_done(&quick_rules);
	unwind_rules_done(&slow_rules);
	return r;
}

#endif
