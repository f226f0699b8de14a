/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_width.h: the number of terminal columns of a text. Colour sequences take none, wide East
 * Asian characters two.
 */
#ifndef TROCAR_CTL_CLI_TEXT_WIDTH_H
#define TROCAR_CTL_CLI_TEXT_WIDTH_H

#include <stddef.h>

/* Returns the number of columns of a text without line ends. */
unsigned int text_width(const char *text);

/*
 * Returns the number of bytes of the character or colour sequence at `text`, 0 at its end;
 * *ret_columns is the number of its columns.
 */
size_t text_width_step(const char *text, unsigned int *ret_columns);

/*
 * Shortens to `columns` (at least 3) with an ellipsis in the middle: both ends of a name identify
 * it best. Takes ownership of `text` and returns it, or the shorter text; without memory it stays
 * as it is.
 */
char *text_width_shorten(char *text, unsigned int columns);

/*
 * As text_width_shorten, with the ellipsis at the end: the begin of a chain of callers is the most
 * useful part.
 */
char *text_width_cut(char *text, unsigned int columns);

#endif
