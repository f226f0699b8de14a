/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/cli/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/terminal.h"
#include "ctl/cli/text_width.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"
#include "shared/tools/utf8.h"

/* The width to which a column of names shrinks first, and its least width if that is not enough. */
#define NAME_COLUMNS	   24
#define NAME_COLUMNS_LEAST 8

char *text_bytes(uint64_t bytes, char text[TEXT_UNIT_BYTES])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t unit = 0;
	double value = (double)bytes;

	while (value >= 1023.95 && unit < ARRAY_SIZE(units) - 1) {
		value /= 1024;
		unit++;
	}
	if (unit == 0)
		snprintf(text, TEXT_UNIT_BYTES, "%u B", (unsigned int)bytes);
	else
		snprintf(text, TEXT_UNIT_BYTES, "%.1f %s", value, units[unit]);
	return text;
}

static void put_pair(char text[TEXT_UNIT_BYTES], uint64_t large, const char *large_unit,
		     uint64_t small, const char *small_unit)
{
	snprintf(text, TEXT_UNIT_BYTES, "%llu %s %llu %s", (unsigned long long)large, large_unit,
		 (unsigned long long)small, small_unit);
}

char *text_duration_us(uint64_t us, char text[TEXT_UNIT_BYTES])
{
	uint64_t s = us / 1000000;

	if (us == 0)
		snprintf(text, TEXT_UNIT_BYTES, "0 s");
	else if (us < 1000)
		snprintf(text, TEXT_UNIT_BYTES, "%u us", (unsigned int)us);
	else if (us < 1000000)
		snprintf(text, TEXT_UNIT_BYTES, "%u ms", (unsigned int)(us / 1000));
	else if (s < 60)
		snprintf(text, TEXT_UNIT_BYTES, "%u.%u s", (unsigned int)s,
			 (unsigned int)(us % 1000000 / 100000));
	else if (s < 3600)
		put_pair(text, s / 60, "min", s % 60, "s");
	else if (s < 86400)
		put_pair(text, s / 3600, "h", s % 3600 / 60, "min");
	else
		put_pair(text, s / 86400, "d", s % 86400 / 3600, "h");
	return text;
}

char *text_tame(const char *text, size_t bytes)
{
	char *tame = malloc(bytes * 4 + 1), *at = tame;
	uint32_t code;

	if (!tame)
		return NULL;
	for (size_t i = 0, n; i < bytes; i += n) {
		n = utf8_sequence(text + i, bytes - i);
		if (n && !utf8_is_control(text + i, n, &code)) {
			memcpy(at, text + i, n);
			at += n;
			continue;
		}
		n = n ? n : 1;
		for (size_t k = 0; k < n; k++)
			at += sprintf(at, "\\x%02x", (unsigned char)text[i + k]);
	}
	*at = 0;
	return tame;
}

/* Prints the character at `json`; returns its number of bytes. */
static size_t put_json_character(FILE *out, const char *json, size_t bytes)
{
	size_t n = utf8_sequence(json, bytes);
	uint32_t code = 0;

	/* Characters below a space are only between the values. */
	if (n && utf8_is_control(json, n, &code) && code > ' ')
		fprintf(out, "\\u%04x", code);
	else
		fwrite(json, 1, n ? n : 1, out);
	return n ? n : 1;
}

void text_json(FILE *out, const char *json, size_t bytes)
{
	for (size_t i = 0; i < bytes;)
		i += put_json_character(out, json + i, bytes - i);
}

/* Prints a string with its closing quote; returns its number of bytes. */
static size_t put_json_string(FILE *out, const char *json, size_t bytes)
{
	size_t i = 0;

	do {
		if (json[i] == '\\')
			fputc(json[i++], out);
		i += put_json_character(out, json + i, bytes - i);
	} while (i < bytes && json[i] != '"');
	if (i < bytes)
		fputc(json[i++], out);
	return i;
}

static void break_line(FILE *out, unsigned int depth)
{
	fprintf(out, "\n%*s", (int)(2 * depth), "");
}

/* Returns whether only blanks precede a closing bracket. */
static bool closes_next(const char *json, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (!strchr(" \t\r\n", json[i]))
			return json[i] == '}' || json[i] == ']';
	return true;
}

void text_json_pretty(FILE *out, const char *json, size_t bytes)
{
	unsigned int depth = 0;

	for (size_t i = 0; i < bytes;) {
		char c = json[i];

		if (c == '"') {
			i += put_json_string(out, json + i, bytes - i);
			continue;
		}
		i++;
		if (strchr(" \t\r\n", c))
			continue;
		if (c == '}' || c == ']')
			break_line(out, --depth);
		fputc(c, out);
		if (c == ':')
			fputc(' ', out);
		if (c == '{' || c == '[')
			depth++;
		if (c == ',' || ((c == '{' || c == '[') && !closes_next(json + i, bytes - i)))
			break_line(out, depth);
	}
}

void text_table_init(struct text_table *table, unsigned int columns)
{
	*table = (struct text_table){ .columns = MIN(columns, (unsigned int)TEXT_COLUMNS_MAX) };
}

void text_table_done(struct text_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->cells[i]);
	free(table->cells);
	*table = (struct text_table){ 0 };
}

void text_table_add(struct text_table *table, char *cell)
{
	if (array_reserve(&table->cells, &table->space, table->count + 1, sizeof(*table->cells)) <
	    0) {
		free(cell);
		table->failed = true;
		return;
	}
	table->cells[table->count++] = cell;
}

void text_table_printf(struct text_table *table, const char *format, ...)
{
	char *cell = NULL;
	va_list args;

	va_start(args, format);
	text_table_add(table, vasprintf(&cell, format, args) < 0 ? NULL : cell);
	va_end(args);
}

void text_table_words(struct text_table *table, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		text_table_add(table, strdup(words[i]));
}

static const char *get_cell(const struct text_table *table, size_t i)
{
	return table->cells[i] ? table->cells[i] : "-";
}

/* The printed columns of a table. */
struct layout {
	unsigned int widths[TEXT_COLUMNS_MAX];
	unsigned int heads[TEXT_COLUMNS_MAX];
	bool gone[TEXT_COLUMNS_MAX];
};

static void measure_cells(const struct text_table *table, struct layout *l)
{
	*l = (struct layout){ 0 };
	if (!table->columns)
		return;
	for (unsigned int c = 0; c < table->columns; c++)
		l->gone[c] = table->zeros & 1u << c;
	for (size_t i = 0; i < table->count; i++) {
		unsigned int column = (unsigned int)(i % table->columns);
		unsigned int width = text_width(get_cell(table, i));

		l->widths[column] = MAX(l->widths[column], width);
		if (i < table->columns && !table->headless)
			l->heads[column] = width;
		else if (strcmp(get_cell(table, i), "0") != 0)
			l->gone[column] = false;
	}
}

static unsigned int measure_line(const struct text_table *table, const struct layout *l,
				 unsigned int indent)
{
	unsigned int width = indent;

	for (unsigned int c = 0; c < table->columns; c++)
		if (!l->gone[c])
			width += l->widths[c] + (width > indent ? 2 : 0);
	return width;
}

/*
 * Returns the widest column that may still become narrower; the number of columns if there is none.
 */
static unsigned int find_widest(const struct text_table *table, const struct layout *l,
				unsigned int floor)
{
	unsigned int widest = table->columns;

	for (unsigned int c = 0; c < table->columns; c++)
		if (!l->gone[c] && !(table->rigid & 1u << c) &&
		    l->widths[c] > MAX(floor, l->heads[c]) &&
		    (widest == table->columns || l->widths[c] > l->widths[widest]))
			widest = c;
	return widest;
}

/*
 * Makes the widest columns narrower, down to `floor`, until the lines fit. Returns whether they
 * fit.
 */
static bool narrow_columns(const struct text_table *table, struct layout *l, unsigned int indent,
			   unsigned int floor)
{
	unsigned int columns = terminal_columns(UINT32_MAX), c;

	while (measure_line(table, l, indent) > columns) {
		c = find_widest(table, l, floor);
		if (c == table->columns)
			return false;
		l->widths[c]--;
	}
	return true;
}

/*
 * First shortens names, then drops optional columns, the last one first, then shortens names to the
 * least width.
 */
static void fit_columns(const struct text_table *table, struct layout *l, unsigned int indent)
{
	bool fits = narrow_columns(table, l, indent, NAME_COLUMNS);

	for (unsigned int c = table->columns; !fits && c-- > 0;) {
		if (!(table->spare & 1u << c))
			continue;
		measure_cells(table, l);
		for (unsigned int k = c; k < table->columns; k++)
			l->gone[k] |= table->spare & 1u << k;
		fits = narrow_columns(table, l, indent, NAME_COLUMNS);
	}
	if (!fits)
		narrow_columns(table, l, indent, NAME_COLUMNS_LEAST);
}

/*
 * Prints `blanks` pending blanks, then a cell; returns the number of blanks pending after it. So no
 * line ends with blanks.
 */
static unsigned int put_cell(struct text_table *table, const struct layout *l, size_t i,
			     unsigned int blanks, FILE *out)
{
	unsigned int column = (unsigned int)(i % table->columns), width;

	width = MAX(l->widths[column], 3u);
	if (table->cells[i])
		table->cells[i] = table->ends & 1u << column
					  ? text_width_cut(table->cells[i], width)
					  : text_width_shorten(table->cells[i], width);
	width = text_width(get_cell(table, i));
	if (width)
		fprintf(out, "%*s%s", (int)blanks, "", get_cell(table, i));
	return (width ? 0 : blanks) + l->widths[column] - MIN(width, l->widths[column]) + 2;
}

/* The head is the first row, unless the table is headless. */
static bool is_head(const struct text_table *table, size_t row)
{
	return row == 0 && !table->headless;
}

int text_table_print(struct text_table *table, unsigned int indent, FILE *out)
{
	struct layout l;

	if (table->failed)
		return -ENOMEM;
	measure_cells(table, &l);
	fit_columns(table, &l, indent);
	for (size_t row = 0; row * table->columns < table->count; row++) {
		unsigned int blanks = indent;

		fputs(is_head(table, row) ? terminal_on(STYLE_HEAD) : "", out);
		for (unsigned int c = 0; c < table->columns; c++)
			if (!l.gone[c])
				blanks = put_cell(table, &l, row * table->columns + c, blanks, out);
		fprintf(out, "%s\n", is_head(table, row) ? terminal_off() : "");
	}
	return 0;
}
