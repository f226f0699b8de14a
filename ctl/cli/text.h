/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h: what a person reads: units, aligned tables, and strings from outside that cannot drive
 * the terminal they are printed on.
 */
#ifndef TROCAR_CTL_CLI_TEXT_H
#define TROCAR_CTL_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_COLUMNS_MAX 12
#define TEXT_UNIT_BYTES	 32

/* "0 B", "812 B", "4.0 MiB". Returns `text`. */
char *text_bytes(uint64_t bytes, char text[TEXT_UNIT_BYTES]);

/* "850 us", "120 ms", "3.2 s", "5 min 3 s", "2 h 5 min", "3 d 4 h". Returns `text`. */
char *text_duration_us(uint64_t us, char text[TEXT_UNIT_BYTES]);

/*
 * A new copy in which the characters of utf8_is_control (control characters, bidirectional
 * controls) and bytes that are no UTF-8 are written as "\x1b". The caller frees; NULL: no memory.
 */
char *text_tame(const char *text, size_t bytes);

/*
 * Prints JSON text, with the characters of utf8_is_control that JSON allows (DEL, C1, ...) as
 * "\u009b".
 */
void text_json(FILE *out, const char *json, size_t bytes);

/* The same, a line for each member and element, indented by two blanks a level. */
void text_json_pretty(FILE *out, const char *json, size_t bytes);

/* Rows of cells; the first row is the head, unless the table is headless. */
struct text_table {
	unsigned int columns;
	char **cells; /* owned, as are its strings; NULL prints as "-" */
	size_t count, space;
	uint32_t spare; /* bits of the columns that may be left out where lines are short */
	uint32_t rigid; /* bits of the columns with cells that stay whole */
	uint32_t ends;	/* bits of the columns with cells that lose their end, not their middle */
	bool headless;
	bool failed; /* no memory: text_table_print reports it */
};

/* The ending of a word of which there are n: "" or "s". */
static inline const char *text_s(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void text_table_init(struct text_table *table, unsigned int columns);
void text_table_done(struct text_table *table);

/* Appends the next cell, row by row. Takes `cell` over. */
void text_table_add(struct text_table *table, char *cell);

/*
 * Each line starts with `indent` spaces; the last column is not padded. Where the lines would be
 * longer than the terminal's (terminal.h), the widest cells lose their middle, and columns of
 * `spare` are left out, the last one first. 0 or -ENOMEM.
 */
int text_table_print(struct text_table *table, unsigned int indent, FILE *out);

#endif
