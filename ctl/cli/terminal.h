/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * terminal.h: the properties of the output: the length of its lines, whether it has colours, and
 * the characters that it can show. Found once, before the program reads foreign data; all printing
 * code uses them.
 */
#ifndef TROCAR_CTL_CLI_TERMINAL_H
#define TROCAR_CTL_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#define TERMINAL_COLUMNS_MIN 40	      /* a narrower terminal is treated as this wide */
#define TERMINAL_COLUMNS     80	      /* of a terminal without a known width */
#define TERMINAL_OFF	     "\x1b[m" /* ends a style; each sequence that begins one is longer */

struct terminal {
	unsigned int columns; /* of a line; 0: no limit */
	bool is_one;	      /* a person reads it: graphics that only repeat a number are drawn */
	bool colours;
	bool utf8; /* else only ASCII is drawn; names stay as they are */
};

/* The kind of a text, which selects its colour. The rows of account_parts.def follow. */
enum terminal_style {
	STYLE_PLAIN,
	STYLE_HEAD,
	STYLE_QUIET,
	STYLE_GOOD,
	STYLE_WARN,
	STYLE_BAD,
#define PART(id, json, help) STYLE_##id,
#include "shared/abi/account_parts.def"
#undef PART
	STYLE_COUNT_,
};

/*
 * Finds the properties of `out`. Without a terminal the line length is $COLUMNS, which the caller
 * of a pager may export, or unlimited. $NO_COLOR (no-color.org) and TERM=dumb disable colours;
 * LC_ALL, LC_CTYPE and LANG decide whether the characters are UTF-8, as in locale(7).
 */
void terminal_find(FILE *out, struct terminal *ret_terminal);

/*
 * Makes all printing code use this terminal from now on. Before the first call there is no terminal
 * and no colour.
 */
void terminal_use(const struct terminal *terminal);
const struct terminal *terminal_get(void);

/* Returns the length of lines; `otherwise` if it is unlimited. */
unsigned int terminal_columns(unsigned int otherwise);

/* Return the sequences that begin and end a style; "" without colours. */
const char *terminal_on(enum terminal_style style);
const char *terminal_off(void);

#endif
