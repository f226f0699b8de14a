/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h: text for people: units, aligned tables, and foreign strings made safe to print on a
 * terminal.
 */
#ifndef TROCAR_CTL_CLI_TEXT_H
#define TROCAR_CTL_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_COLUMNS_MAX 12
#define TEXT_UNIT_BYTES	 32

/* Writes a size: "0 B", "812 B", "4.0 MiB". Returns `text`. */
char *text_bytes(uint64_t bytes, char text[TEXT_UNIT_BYTES]);

/*
 * Writes a duration: "850 us", "120 ms", "3.2 s", "5 min 3 s", "2 h 5 min", "3 d 4 h". Returns
 * `text`.
 */
char *text_duration_us(uint64_t us, char text[TEXT_UNIT_BYTES]);

/*
 * Returns a new copy in which the characters of utf8_is_control (control characters, bidirectional
 * controls) and bytes that are not UTF-8 are written in the form "\x1b". The caller frees it; NULL:
 * no memory.
 */
char *text_tame(const char *text, size_t bytes);

/*
 * Prints JSON text. Writes the characters of utf8_is_control that JSON allows (DEL, C1, ...) in the
 * form "\u009b".
 */
void text_json(FILE *out, const char *json, size_t bytes);

/* As text_json, with a line for each member and element, indented by two blanks per level. */
void text_json_pretty(FILE *out, const char *json, size_t bytes);

/* Rows of cells; the first row is the head, unless the table is headless. */
struct text_table {
	unsigned int columns;
	char **cells; /* owned, with its strings; NULL prints as "-" */
	size_t count, space;
	uint32_t spare; /* bits of the columns that may be omitted if lines are short */
	uint32_t rigid; /* bits of the columns with cells never cut */
	uint32_t ends;	/* bits of the columns with cells cut at the end, not in the middle */
	uint32_t zeros; /* bits of the columns that are omitted if all their cells are "0" */
	bool headless;
	bool failed; /* no memory: text_table_print reports it */
};

/* Returns the plural ending of a word for a count of n: "" or "s". */
static inline const char *text_s(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void text_table_init(struct text_table *table, unsigned int columns);
void text_table_done(struct text_table *table);

/* Appends the next cell, row by row. Takes ownership of `cell`. */
void text_table_add(struct text_table *table, char *cell);

/* Appends a cell with a formatted text, or `n` cells with these words. */
void text_table_printf(struct text_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void text_table_words(struct text_table *table, const char *const *words, size_t n);

/*
 * Prints the table. Each line starts with `indent` spaces; the last column is not padded. If lines
 * would be longer than the terminal's (terminal.h), the widest cells lose their middle, and columns
 * of `spare` are omitted, the last one first. 0 or -ENOMEM.
 */
int text_table_print(struct text_table *table, unsigned int indent, FILE *out);

#endif
