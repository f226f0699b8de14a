/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/html_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ctl/cli/wrap.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* Returns the bytes of the escape sequence at `text`, up to its letter. */
static size_t step_escape(const char *text, size_t bytes)
{
	size_t n = 1;

	while (n < bytes && !isalpha((unsigned char)text[n]))
		n++;
	return MIN(n + 1, bytes);
}

static void put_byte(char byte, FILE *out)
{
	switch (byte) {
	case '&':
		fputs("&amp;", out);
		return;
	case '<':
		fputs("&lt;", out);
		return;
	case '>':
		fputs("&gt;", out);
		return;
	case '"':
		fputs("&quot;", out);
		return;
	case '\'':
		fputs("&#39;", out);
		return;
	default:
		if (byte == '\n' || byte == '\t' || ((unsigned char)byte >= ' ' && byte != '\x7f'))
			fputc(byte, out);
	}
}

/*
 * Begins the style of the sequence "\x1b[31m". Returns whether it is a style; "\x1b[m" only ends
 * one.
 */
static bool open_style(const char *text, size_t bytes, FILE *out)
{
	size_t digits = bytes > 3 && text[1] == '[' ? strspn(text + 2, "0123456789") : 0;

	if (!digits || digits > 2 || digits + 3 != bytes || text[bytes - 1] != 'm')
		return false;
	fprintf(out, "<span class=\"c%.*s\">", (int)digits, text + 2);
	return true;
}

void html_text_put(const char *text, size_t bytes, FILE *out)
{
	bool open = false;

	for (size_t i = 0; i < bytes;) {
		size_t n;

		if (text[i] != '\x1b') {
			put_byte(text[i++], out);
			continue;
		}
		if (open)
			fputs("</span>", out);
		n = step_escape(text + i, bytes - i);
		open = open_style(text + i, n, out);
		i += n;
	}
	if (open)
		fputs("</span>", out);
}

/* Finds the heading of a section, without its style: up to ": " or the line's end. */
static size_t measure_heading(const char *text, size_t bytes, const char **ret_heading)
{
	size_t skip = 0, n;

	while (skip < bytes && text[skip] == '\x1b')
		skip += step_escape(text + skip, bytes - skip);
	*ret_heading = text + skip;
	for (n = skip; n < bytes && text[n] != ':' && text[n] != '\n' && text[n] != '\x1b'; n++)
		;
	return n - skip;
}

/* Writes a table unchanged, and the sentences around it in lines of `columns` columns. */
static int put_wrapped(const char *text, size_t bytes, unsigned int columns, FILE *out)
{
	_cleanup_free_ char *lines = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&lines, &n), *wrapping = to ? wrap_open(to, columns) : NULL;

	if (wrapping) {
		fwrite(text, 1, bytes, wrapping);
		fputc('\n', wrapping); /* only whole lines are broken */
		wrap_close(wrapping);
	}
	if (!to || fclose(to) == EOF || !wrapping)
		return -ENOMEM;
	html_text_put(lines, n ? n - 1 : 0, out);
	return 0;
}

static bool has_heading(const char *text, size_t bytes, const char *wanted)
{
	const char *heading;
	size_t n = measure_heading(text, bytes, &heading);

	return wanted && n == strlen(wanted) && !memcmp(heading, wanted, n);
}

/* Writes one section, of sentences, which the browser wraps, or a table. */
static int put_section(const char *text, size_t bytes, unsigned int columns, bool words, FILE *out)
{
	int r = 0;

	fprintf(out, "<section%s>\n<pre>", words ? " class=\"words\"" : "");
	if (words)
		html_text_put(text, bytes, out);
	else
		r = put_wrapped(text, bytes, columns, out);
	fputs("</pre>\n</section>\n", out);
	return r;
}

/*
 * Returns whether the text is a rule between sessions; on a page each session has its own element.
 */
static bool is_rule(const char *text, size_t bytes)
{
	return bytes == 4 && !memcmp(text, "----", 4);
}

int html_text_sections(const char *report, unsigned int columns, const char *last,
		       void (*behind)(void *context), void *context, FILE *out)
{
	bool done = false;
	int r = 0;

	while (*report && r == 0) {
		const char *end = strstr(report, "\n\n");
		size_t bytes = end ? (size_t)(end - report) : strlen(report);
		bool is_last;

		for (; bytes && *report == '\n'; report++)
			bytes--;
		while (bytes && report[bytes - 1] == '\n')
			bytes--;
		if (bytes && !is_rule(report, bytes))
			r = put_section(report, bytes, columns, !done, out);
		is_last = bytes && has_heading(report, bytes, last);
		if (is_last && !done)
			behind(context);
		done |= is_last;
		report = end ? end + 2 : "";
	}
	if (!done)
		behind(context);
	return r;
}

void html_text_base64(const char *data, size_t bytes, FILE *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes; i += 3) {
		size_t n = MIN(bytes - i, (size_t)3);
		uint32_t group = 0;

		for (size_t k = 0; k < 3; k++)
			group = group << 8 | (k < n ? (unsigned char)data[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			fputc(k <= n ? digits[group >> (18 - 6 * k) & 63] : '=', out);
	}
}
