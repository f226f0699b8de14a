/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_scan.h: makes rows for text without call frame information, such as musl's C library, by
 * following its instructions. It follows a function from its first byte along every branch. A
 * function gets rows only if all of its instructions are known, all paths to an instruction agree
 * on the frame's position, and it returns with an unchanged stack. Any other function gets none:
 * nothing is guessed.
 */
#ifndef TROCAR_CONSUMER_UNWIND_INFER_UNWIND_SCAN_H
#define TROCAR_CONSUMER_UNWIND_INFER_UNWIND_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/unwind/compile/unwind_rules.h"
#include "consumer/unwind/compile/unwind_table.h"

#define UNWIND_SCAN_MAX	 (1u << 20) /* bytes of text of one file: a C library has less */
#define UNWIND_SCAN_NONE UINT32_MAX

struct unwind_scan {
	const uint8_t *text;	   /* borrowed */
	uint32_t bytes;		   /* of the text, at most UNWIND_SCAN_MAX */
	uint32_t pc;		   /* of the text's first byte, minus the table's base */
	uint32_t entry;		   /* offset of the file's entry point, or UNWIND_SCAN_NONE */
	const uint32_t *functions; /* borrowed; known begins of functions as pcs, or NULL */
	size_t function_count;
};

#define UNWIND_SCAN_TARGETS(bytes) ((bytes) / 5 + 1) /* most targets in this much text */

/*
 * Finds the pcs that the text calls or takes the address of, and writes them to ret_pcs, which has
 * space for UNWIND_SCAN_TARGETS. Returns their number. Functions begin there; a pc may be outside
 * the text.
 */
size_t unwind_scan_targets(const struct unwind_scan *scan, uint32_t *ret_pcs);

/*
 * Appends rows for the text to `table`, with UNWIND_RULE_NONE where nothing is known; the last
 * row's pc may be the end of the text. Adds the number of functions with rows to *functions.
 * Returns 0; -ENOSPC, -ENOMEM, -EOVERFLOW as unwind_rules_add and unwind_table_push.
 */
int unwind_scan_text(const struct unwind_scan *scan, struct unwind_rules *rules, uint32_t limit,
		     struct unwind_table *table, uint32_t *functions);

#endif
