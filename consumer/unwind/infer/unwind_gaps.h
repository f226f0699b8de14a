/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind_gaps.h: rows by unwind_scan.h for the text that a file's call frame information leaves
 * out. */
#ifndef TROCAR_CONSUMER_UNWIND_GAPS_H
#define TROCAR_CONSUMER_UNWIND_GAPS_H

#include "consumer/unwind/compile/unwind_rules.h"
#include "consumer/unwind/compile/unwind_table.h"
#include "shared/elf/elf_reader.h"

/*
 * Puts rows into the gaps of `table`: the text of executable segments where its rule is
 * UNWIND_RULE_NONE. Only where the entry point is in one: startup code without information has a C
 * library without it, musl's. And not where the gaps are more than UNWIND_SCAN_MAX in all: that is
 * a runtime with ways of its own. The table ends with UNWIND_RULE_NONE, before and after. 0; errors
 * as unwind_scan_text, elf_reader_at and elf_reader_sections; then the table is as before.
 */
int unwind_gaps_fill(struct elf_reader *elf, struct unwind_rules *rules, uint32_t limit,
		     struct unwind_table *table);

#endif
