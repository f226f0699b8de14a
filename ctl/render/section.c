/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/section.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "shared/tools/macro.h"

#define EIGHTHS	    8
#define BLOCK_BYTES 3 /* of U+2581 to U+258F in UTF-8 */

void section_begin(FILE *out, const char *head)
{
	fprintf(out, "\n%s%s%s: ", terminal_on(STYLE_HEAD), head, terminal_off());
}

void section_head(FILE *out, const char *head, const char *format, ...)
{
	va_list args;

	section_begin(out, head);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fputc('\n', out);
}

void section_print(struct session_lines *s, struct text_table *table)
{
	int r = text_table_print(table, 2, s->out);

	if (r < 0)
		session_lines_fail(s, r);
}

bool section_table(struct session_lines *s, const struct store_lines *list,
		   const struct section_table *table)
{
	_cleanup_(text_table_done) struct text_table rows;
	const struct json_node *line;

	columns_begin(&rows, table->columns, table->n);
	if (!list->count)
		return false;
	session_lines_for_each (line, s, list, table->top)
		if (!table->rows || member_text_holds(table->rows, line))
			columns_add(&rows, table->columns, line);
	if (table->head)
		section_head(s->out, table->head, "%s", table->title);
	else
		fprintf(s->out, "\n%s\n", table->title);
	section_print(s, &rows);
	return true;
}

void section_more(FILE *out, uint64_t all, uint64_t n)
{
	if (all > n)
		fprintf(out, "  and %" PRIu64 " more\n", all - n);
}

void section_share(struct text_table *table, uint64_t part, uint64_t whole)
{
	if (whole)
		text_table_printf(table, "%5.1f %%", 100 * (double)part / (double)whole);
	else
		text_table_add(table, NULL);
}

/*
 * Draws full blocks for whole columns, then one block for the remaining eighths (U+2588 to U+258F).
 */
static char *draw_blocks(unsigned int eighths)
{
	unsigned int whole = eighths / EIGHTHS, rest = eighths % EIGHTHS;
	char *bar = malloc((whole + 1) * BLOCK_BYTES + 1), *at = bar;

	if (!bar)
		return NULL;
	for (unsigned int i = 0; i < whole; i++, at += BLOCK_BYTES)
		memcpy(at, "\xe2\x96\x88", BLOCK_BYTES);
	if (rest) {
		memcpy(at, "\xe2\x96\x88", BLOCK_BYTES);
		at[2] = (char)(at[2] + EIGHTHS - (int)rest);
		at += BLOCK_BYTES;
	}
	*at = 0;
	return bar;
}

char *section_bar(double share, unsigned int columns)
{
	unsigned int eighths = (unsigned int)(MIN(share, 1.0) * columns * EIGHTHS + 0.5);
	unsigned int whole = (eighths + EIGHTHS / 2) / EIGHTHS;
	char *bar;

	if (!terminal_get()->is_one)
		return strdup("");
	if (share > 0 && !eighths)
		eighths = 1;
	if (terminal_get()->utf8)
		return draw_blocks(eighths);
	whole = share > 0 ? MAX(whole, 1u) : whole;
	bar = malloc(whole + 1);
	if (bar) {
		memset(bar, '#', whole);
		bar[whole] = 0;
	}
	return bar;
}
