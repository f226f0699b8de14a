/* SPDX-License-Identifier: BSD-2-Clause */
/* section.h: prints the heads, tables and bars of the text report. */
#ifndef TROCAR_CTL_RENDER_SECTION_H
#define TROCAR_CTL_RENDER_SECTION_H

#include <stdbool.h>
#include <stdio.h>

#include "ctl/cli/columns.h"
#include "ctl/render/session_lines.h"

/* Prints an empty line and the head of the next part, without the end of its line. */
void section_begin(FILE *out, const char *head);

/* Prints it with its title, which ends the line. */
void section_head(FILE *out, const char *head, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A section with a row for each line of a list. */
struct section_table {
	const char *head; /* NULL: the title is alone */
	const char *title;
	const struct column *columns;
	unsigned int n;	  /* columns */
	uint32_t top;	  /* of how many lines */
	const char *rows; /* the condition (member_text.h) for a row; NULL: each line has one */
};

/* Prints the table if the list has a line. Returns whether it has. */
bool section_table(struct session_lines *s, const struct store_lines *list,
		   const struct section_table *table);

/* Prints a table below the head of a section. */
void section_print(struct session_lines *s, struct text_table *table);

/* Prints how many of `all` are not printed, if there are more than `n`. */
void section_more(FILE *out, uint64_t all, uint64_t n);

/* Adds a cell with the share of `part`, or "-" if `whole` is 0. */
void section_share(struct text_table *table, uint64_t part, uint64_t whole);

/*
 * Returns a new bar for `share` (0 to 1) of `columns` columns, with at least a mark if the share is
 * above 0; "" where no bar is needed, because the number is next to it. NULL: no memory.
 */
char *section_bar(double share, unsigned int columns);

#endif
