/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_table.h: the rows of one file and their page index, in the form of
 * shared/abi/unwind_abi.h. The compiler appends rows by ascending address and then finishes the
 * table, which no longer changes.
 */
#ifndef TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_TABLE_H
#define TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/unwind/cfi/cfi_loss.h"
#include "shared/abi/unwind_abi.h"

/* Counts of a compilation. */
struct unwind_counts {
	uint32_t entries;		/* FDEs that became rows */
	uint32_t states;		/* rows before equal neighbours were merged */
	uint32_t followed;		/* functions without an FDE that unwind_scan.h handled */
	uint32_t rules;			/* added to the dictionary by this file */
	uint64_t steps;			/* bytes of instructions run, and of CIEs */
	uint64_t text_bytes;		/* covered by rows */
	uint64_t unsupported_bytes;	/* part of text_bytes with UNWIND_RULE_UNSUPPORTED */
	uint32_t lost[CFI_LOSS_COUNT_]; /* states or entries, by enum cfi_loss */
};

struct unwind_table {
	uint64_t base;		 /* the pc of a row is an address of the file minus this */
	struct unwind_row *rows; /* owned */
	uint32_t row_count, row_space;
	uint32_t *pages; /* owned; words of UNWIND_PAGE */
	uint32_t page_count;
	struct unwind_counts counts;
};

/*
 * Makes space for `rows` more rows, at least 1. Returns 0; -EOVERFLOW beyond UNWIND_ROWS_MAX;
 * -ENOMEM.
 */
int unwind_table_grow(struct unwind_table *t, uint32_t rows);

/*
 * Appends a row, unless the last one has the same rule. `pc` is above the last row's and below
 * UNWIND_SPAN_MAX; the first row's is 0. Errors as unwind_table_grow.
 */
static inline int unwind_table_push(struct unwind_table *t, uint32_t pc, uint16_t rule)
{
	uint32_t n = t->row_count;
	int r;

	if (n > 0 && t->rows[n - 1].rule == rule)
		return 0;
	if (n == t->row_space) {
		r = unwind_table_grow(t, 1);
		if (r < 0)
			return r;
	}
	t->rows[n] = (struct unwind_row){ .pc = pc, .rule = rule };
	t->row_count = n + 1;
	return 0;
}

/*
 * Builds the page index, counts bytes and frees spare memory. The table has at least one row.
 * Returns 0 or -ENOMEM.
 */
int unwind_table_finish(struct unwind_table *t);
void unwind_table_done(struct unwind_table *t);

/* Returns the index of the rule at an address of the file; UNWIND_RULE_NONE outside the table. */
uint16_t unwind_table_find(const struct unwind_table *t, uint64_t address);

/* Returns the bytes of heap. */
size_t unwind_table_bytes(const struct unwind_table *t);

#endif
