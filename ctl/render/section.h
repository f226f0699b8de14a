/* SPDX-License-Identifier: BSD-2-Clause */
/* section.h: prints the heads and bars of the text report. */
#ifndef TROCAR_CTL_RENDER_SECTION_H
#define TROCAR_CTL_RENDER_SECTION_H

#include <stdbool.h>
#include <stdio.h>

#include "ctl/cli/text.h"

/* Prints an empty line and the head of the next part, without the end of its line. */
void section_begin(FILE *out, const char *head);

/* Prints it with its title, which ends the line. */
void section_head(FILE *out, const char *head, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints how many of `all` are not printed, if there are more than `n`. */
void section_more(FILE *out, uint64_t all, uint64_t n);

/* Adds a cell with the share of `part`, or "-" if `whole` is 0. */
void section_share(struct text_table *table, uint64_t part, uint64_t whole);

/* Returns a new text "12 samples", or "1 sample". NULL: no memory. */
char *section_count(unsigned long long n, const char *one, const char *many);

/*
 * Returns a new bar for `share` (0 to 1) of `columns` columns, with at least a mark if the share is
 * above 0; "" where no bar is needed, because the number is next to it. NULL: no memory.
 */
char *section_bar(double share, unsigned int columns);

#endif
