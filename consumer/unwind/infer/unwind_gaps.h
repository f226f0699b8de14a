/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind_gaps.h: makes rows with unwind_scan.h for text without call frame information. */
#ifndef TROCAR_CONSUMER_UNWIND_INFER_UNWIND_GAPS_H
#define TROCAR_CONSUMER_UNWIND_INFER_UNWIND_GAPS_H

#include "consumer/unwind/compile/unwind_rules.h"
#include "consumer/unwind/compile/unwind_table.h"
#include "shared/elf/elf_reader.h"

/*
 * Puts rows into the gaps of `table`: the text of executable segments where its rule is
 * UNWIND_RULE_NONE. Does so only if the file's entry point is in a gap, because startup code
 * without call frame information means a C library without it, musl's. Does nothing if the gaps
 * have more than UNWIND_SCAN_MAX bytes in all, because such a file is a runtime with its own stack
 * layouts. The table ends with UNWIND_RULE_NONE, before and after. Returns 0, or the errors of
 * unwind_scan_text, elf_reader_at and elf_reader_sections, after which the table is unchanged.
 */
int unwind_gaps_fill(struct elf_reader *elf, struct unwind_rules *rules, uint32_t limit,
		     struct unwind_table *table);

#endif
