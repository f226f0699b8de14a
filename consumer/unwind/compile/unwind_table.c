/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/compile/unwind_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "shared/tools/macro.h"

static_assert(UNWIND_ROWS_MAX <= 1u << 23, "the number of a row fits a word of the page index");
static_assert(UNWIND_PAGE_BYTES < 512, "so does the number of a page's rows");
static_assert(UNWIND_PAGE_BYTES <= 1u << UNWIND_SEARCH_STEPS, "and so many steps find one");

int unwind_table_grow(struct unwind_table *t, uint32_t rows)
{
	uint32_t space = MAX(t->row_space * 2, 1024u);
	struct unwind_row *more;

	if (rows > UNWIND_ROWS_MAX - t->row_count)
		return -EOVERFLOW;
	space = MIN(MAX(space, t->row_count + rows), UNWIND_ROWS_MAX);
	more = realloc(t->rows, space * sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->rows = more;
	t->row_space = space;
	return 0;
}

/*
 * Counts in locals: with counters in memory each iteration would wait for the store of the previous
 * one.
 */
static void count_bytes(struct unwind_table *t)
{
	const struct unwind_row *row = t->rows;
	uint64_t text = 0, unsupported = 0;

	for (uint32_t i = 0; i + 1 < t->row_count; i++, row++) {
		uint32_t bytes = row[1].pc - row->pc;

		text += row->rule != UNWIND_RULE_NONE ? bytes : 0;
		unsupported += row->rule == UNWIND_RULE_UNSUPPORTED ? bytes : 0;
	}
	t->counts.text_bytes = text;
	t->counts.unsupported_bytes = unsupported;
}

/*
 * Counts the rows that begin in each page, then computes the pages' numbers. `next` is the first
 * row that begins in or after the page; it exists, because the last page holds the last row. Unless
 * that row begins with the page, the row before covers the page's start. Neither loop has a branch
 * that depends on the rows.
 */
static void fill_pages(struct unwind_table *t)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < t->row_count; i++)
		t->pages[t->rows[i].pc >> UNWIND_PAGE_SHIFT]++;
	for (uint32_t page = 0; page < t->page_count; page++) {
		uint32_t start = page << UNWIND_PAGE_SHIFT, count = t->pages[page];
		uint32_t before = t->rows[next].pc != start;

		t->pages[page] = UNWIND_PAGE(next - before, count + before);
		next += count;
	}
}

int unwind_table_finish(struct unwind_table *t)
{
	struct unwind_row *rows;

	t->page_count = (t->rows[t->row_count - 1].pc >> UNWIND_PAGE_SHIFT) + 1;
	t->pages = calloc(t->page_count, sizeof(*t->pages));
	if (!t->pages)
		return -ENOMEM;
	fill_pages(t);
	count_bytes(t);
	rows = realloc(t->rows, t->row_count * sizeof(*rows));
	if (rows) {
		t->rows = rows;
		t->row_space = t->row_count;
	}
	return 0;
}

void unwind_table_done(struct unwind_table *t)
{
	free(t->rows);
	free(t->pages);
	*t = (struct unwind_table){ 0 };
}

uint16_t unwind_table_find(const struct unwind_table *t, uint64_t address)
{
	uint64_t pc = address - t->base;
	const struct unwind_row *row;
	uint32_t word, left;

	if (address < t->base || pc >> UNWIND_PAGE_SHIFT >= t->page_count)
		return UNWIND_RULE_NONE;
	word = t->pages[pc >> UNWIND_PAGE_SHIFT];
	row = t->rows + UNWIND_PAGE_FIRST(word);
	for (left = UNWIND_PAGE_COUNT(word); left > 1;) {
		uint32_t half = left / 2;

		if (row[half].pc <= pc)
			row += half;
		left -= half;
	}
	return row->rule;
}

size_t unwind_table_bytes(const struct unwind_table *t)
{
	return t->row_space * sizeof(*t->rows) + t->page_count * sizeof(*t->pages);
}
