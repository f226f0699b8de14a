/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_width.h: how many columns of a terminal a text takes. Sequences that colour it take none,
 * wide characters of East Asia two.
 */
#ifndef TROCAR_CTL_CLI_TEXT_WIDTH_H
#define TROCAR_CTL_CLI_TEXT_WIDTH_H

#include <stddef.h>

/* Returns the columns of a text without line ends. */
unsigned int text_width(const char *text);

/*
 * Returns the bytes of the character or colour at `text`, 0 at its end; *ret_columns are those that
 * it takes.
 */
size_t text_width_step(const char *text, unsigned int *ret_columns);

/*
 * Shortens to `columns` (at least 3) with an ellipsis in the middle: both ends of a name identify
 * it best. Takes `text` over and returns it, or the shorter one; without memory it stays as it is.
 */
char *text_width_shorten(char *text, unsigned int columns);

/* The same, with the ellipsis at the end: the begin of a chain of callers is most useful. */
char *text_width_cut(char *text, unsigned int columns);

#endif
