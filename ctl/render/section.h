/* SPDX-License-Identifier: BSD-2-Clause */
/* section.h: prints the heads and bars of the text report. */
#ifndef TROCAR_CTL_RENDER_SECTION_H
#define TROCAR_CTL_RENDER_SECTION_H

#include <stdbool.h>
#include <stdio.h>

/* Prints an empty line and the head of the next part; `format` is its title. */
void section_head(FILE *out, const char *head, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns a new text "12 samples", or "1 sample". NULL: no memory. */
char *section_count(unsigned long long n, const char *one, const char *many);

/*
 * Returns a new bar for `share` (0 to 1) of `columns` columns, with at least a mark if the share is
 * above 0; "" where no bar is needed, because the number is next to it. NULL: no memory.
 */
char *section_bar(double share, unsigned int columns);

#endif
