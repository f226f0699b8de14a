/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_scan.h: rows for text that has no call frame information, by following its instructions.
 * musl's C library is such text. A function is followed from its first byte along every branch; it
 * gets rows only when all of it can be read, all ways to an instruction agree where the frame is,
 * and it returns with the stack as it was. Anything else gets none: nothing is guessed.
 */
#ifndef TROCAR_CONSUMER_UNWIND_SCAN_H
#define TROCAR_CONSUMER_UNWIND_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/unwind/compile/unwind_rules.h"
#include "consumer/unwind/compile/unwind_table.h"

#define UNWIND_SCAN_MAX	 (1u << 20) /* bytes of text of one file: more is no C library's */
#define UNWIND_SCAN_NONE UINT32_MAX

struct unwind_scan {
	const uint8_t *text; /* borrowed */
	uint32_t bytes;	     /* of it; at most UNWIND_SCAN_MAX */
	uint32_t pc;	     /* of its first byte, less the table's base */
	uint32_t entry;	     /* offset of the file's entry point, or UNWIND_SCAN_NONE */
	const uint32_t
		*functions; /* borrowed; pcs at which functions are known to begin, or NULL */
	size_t function_count;
};

#define UNWIND_SCAN_TARGETS(bytes) ((bytes) / 5 + 1) /* at most, in so much text */

/*
 * The pcs that are called or whose address is taken, for which there is room at ret_pcs; how many.
 * Functions begin there; a pc may lie anywhere.
 */
size_t unwind_scan_targets(const struct unwind_scan *scan, uint32_t *ret_pcs);

/*
 * Appends rows for the text to `table`, UNWIND_RULE_NONE where there are none; the last row's pc
 * may be the end of the text. *functions grows by those that were understood. 0; -ENOSPC, -ENOMEM,
 * -EOVERFLOW as unwind_rules_add and unwind_table_push.
 */
int unwind_scan_text(const struct unwind_scan *scan, struct unwind_rules *rules, uint32_t limit,
		     struct unwind_table *table, uint32_t *functions);

#endif
