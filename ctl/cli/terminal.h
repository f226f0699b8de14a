/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * terminal.h: what stands behind the output: how long its lines are, whether it has colours, and
 * which characters it shows. Found once, before anything foreign is read; what prints asks here.
 */
#ifndef TROCAR_CTL_CLI_TERMINAL_H
#define TROCAR_CTL_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#define TERMINAL_COLUMNS_MIN 40	      /* what is narrower is treated as this */
#define TERMINAL_COLUMNS     80	      /* of a terminal without a known width */
#define TERMINAL_OFF	     "\x1b[m" /* ends a style; each that begins one is longer */

struct terminal {
	unsigned int columns; /* of a line; 0: lines may be as long as they get */
	bool is_one;	      /* a person looks at it: what only repeats a number is drawn */
	bool colours;
	bool utf8; /* else ASCII alone is drawn; names stay as they are */
};

/* What a text is, for its colour. The rows of account_parts.def follow. */
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
 * Finds the properties of `out`. Without a terminal the line length is $COLUMNS, which a program
 * like a pager's caller may export, or unbounded. $NO_COLOR (no-color.org) and TERM=dumb mean no
 * colours; LC_ALL, LC_CTYPE and LANG decide whether the characters are UTF-8, as in locale(7).
 */
void terminal_find(FILE *out, struct terminal *ret_terminal);

/* Has all that prints use this one from now on; before, there is no terminal and no colour. */
void terminal_use(const struct terminal *terminal);
const struct terminal *terminal_get(void);

/* Returns the length of lines; where they have no bound, `otherwise`. */
unsigned int terminal_columns(unsigned int otherwise);

/* Returns the sequence that begins and ends a style: "" without colours. */
const char *terminal_on(enum terminal_style style);
const char *terminal_off(void);

#endif
