/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python_lines.h: finds the line of an instruction by the line table of a CPython code object. The
 * three formats are those of Objects/lnotab_notes.txt (to 3.9, and 3.10) and
 * InternalDocs/code_objects.md (from 3.11 on). Pure. The table is a foreign process's and may be
 * anything, or be cut.
 */
#ifndef TROCAR_CONSUMER_RUNTIMES_PYTHON_LINES_H
#define TROCAR_CONSUMER_RUNTIMES_PYTHON_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct python_table {
	const uint8_t *bytes; /* borrowed */
	size_t count;
	bool cut; /* the code object has more of it */
};

/*
 * Returns the line of the instruction at byte `at` of a code object of `version` (0x030b: 3.11)
 * that begins in `first_line`; 0: the table does not have it, or does not reach that far. Before
 * the first instruction (`at` is negative) it is the first line.
 */
int32_t python_lines_find(uint32_t version, const struct python_table *table, int32_t first_line,
			  int64_t at);

#endif
