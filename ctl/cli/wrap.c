/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/cli/wrap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/terminal.h"
#include "ctl/cli/text_width.h"

struct wrap {
	FILE *out; /* borrowed */
	unsigned int columns;
	char *line; /* the unfinished line */
	size_t bytes, space;
};

/* Returns the column of continuation lines (see wrap.h), at most the middle. */
static unsigned int find_hang(const char *line, unsigned int columns)
{
	unsigned int hang = (unsigned int)strspn(line, " ") + 2, at = 0, gap = 0, one;
	bool text = false;

	for (size_t bytes; (bytes = text_width_step(line, &one)) > 0; line += bytes) {
		if (*line != ' ' && text && gap >= 2)
			hang = at;
		gap = *line == ' ' ? gap + 1 : one ? 0 : gap;
		text = text || *line != ' ';
		at += one;
		if (at > columns / 2)
			break;
	}
	return hang <= columns / 2 ? hang : 2;
}

/*
 * Returns the bytes of the line's next word and the blanks before it; *ret_columns is their width.
 */
static size_t measure_word(const char *text, unsigned int *ret_columns)
{
	size_t all = strspn(text, " "), bytes;
	unsigned int one;

	*ret_columns = (unsigned int)all;
	while (text[all] != ' ' && (bytes = text_width_step(text + all, &one)) > 0) {
		*ret_columns += one;
		all += bytes;
	}
	return all;
}

/*
 * Returns the colour that is active after a piece of text; "" for none. `on` is the one before it.
 */
static const char *find_colour(const char *text, size_t bytes, const char *on, size_t *on_bytes)
{
	unsigned int one;

	for (size_t n; bytes && (n = text_width_step(text, &one)) > 0; text += n, bytes -= n) {
		if (*text != '\x1b' || one)
			continue;
		on = text;
		*on_bytes = n == strlen(TERMINAL_OFF) ? 0 : n;
	}
	return on;
}

static void put_line(const struct wrap *w, const char *line)
{
	unsigned int hang, at = 0, one;
	const char *colour = "";
	size_t colour_bytes = 0;
	bool first = true;

	if (*line == *WRAP_NOT || text_width(line) <= w->columns) {
		fprintf(w->out, "%s\n", line + (*line == *WRAP_NOT));
		return;
	}
	hang = find_hang(line, w->columns);
	for (size_t bytes; *line; line += bytes, first = false) {
		bytes = measure_word(line, &one);
		if (!first && at + one > w->columns) {
			size_t blanks = strspn(line, " ");

			fprintf(w->out, "%s\n%*s%.*s", colour_bytes ? TERMINAL_OFF : "", (int)hang,
				"", (int)colour_bytes, colour);
			at = hang;
			line += blanks;
			bytes -= blanks;
			one -= (unsigned int)blanks;
		}
		fwrite(line, 1, bytes, w->out);
		colour = find_colour(line, bytes, colour, &colour_bytes);
		at += one;
	}
	fputc('\n', w->out);
}

/* Prints the finished lines; with `all` also an unfinished one. */
static void put_lines(struct wrap *w, bool all)
{
	char *from = w->line, *end;

	while (w->bytes && (end = memchr(from, '\n', w->bytes))) {
		*end = 0;
		put_line(w, from);
		w->bytes -= (size_t)(end + 1 - from);
		from = end + 1;
	}
	if (w->bytes && from != w->line)
		memmove(w->line, from, w->bytes);
	if (all && w->bytes)
		fwrite(w->line, 1, w->bytes, w->out);
}

static ssize_t take_text(void *cookie, const char *text, size_t bytes)
{
	struct wrap *w = cookie;

	if (w->bytes + bytes > w->space) {
		size_t space = 2 * (w->bytes + bytes);
		char *line = realloc(w->line, space);

		if (!line)
			return 0;
		w->line = line;
		w->space = space;
	}
	memcpy(w->line + w->bytes, text, bytes);
	w->bytes += bytes;
	put_lines(w, false);
	fflush(w->out);
	return (ssize_t)bytes;
}

static int end_text(void *cookie)
{
	struct wrap *w = cookie;

	put_lines(w, true);
	free(w->line);
	free(w);
	return 0;
}

FILE *wrap_open(FILE *out, unsigned int columns)
{
	const cookie_io_functions_t calls = { .write = take_text, .close = end_text };
	struct wrap *w = calloc(1, sizeof(*w));
	FILE *wrapping;

	if (!w)
		return NULL;
	w->out = out;
	w->columns = columns;
	wrapping = fopencookie(w, "w", calls);
	if (wrapping)
		setvbuf(wrapping, NULL, _IOLBF, BUFSIZ);
	else
		free(w);
	return wrapping;
}

void wrap_close(FILE *wrapping)
{
	fclose(wrapping);
}

const char *wrap_not(void)
{
	return terminal_get()->columns ? WRAP_NOT : "";
}
