/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/brief.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/terminal.h"
#include "ctl/cli/wrap.h"
#include "ctl/render/sections.h"
#include "ctl/render/text_report_chains.h"
#include "ctl/render/text_report_timeline.h"
#include "ctl/render/text_report_waits.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define HEADLINE_LINES 5 /* the findings repeat its most important part */
#define LAST_LINES     1 /* how to see the rest */

/* The chain of the first finding that has one. */
static void print_chain(struct session_lines *s)
{
	const struct json_node *finding = json_node_first(json_node_get(s->end, "findings"));

	while (finding && !json_node_get(finding, "chain"))
		finding = json_node_next(finding);
	if (finding)
		text_report_chains_one(s, json_node_u64(json_node_get(finding, "chain")),
				       "\nchain: the threads that they waited for, link by link\n",
				       2);
}

/* The parts of the screen, and how many lines each may have. */
static const struct {
	void (*print)(struct session_lines *s);
	unsigned int lines;
} parts[] = {
	{ text_report_head, 0 }, /* cut_headline */
	{ text_report_answer, 1 },
	{ text_report_head_verdict, 2 },
	{ text_report_head_symptom, 2 },
	{ text_report_findings, 10 },
	{ print_chain, 5 },
	{ text_report_waits_blocked, 5 },
	{ text_report_timeline_busiest, 6 },
};

/* The lines of a part, without its blank lines. */
struct lines {
	char *text;   /* owned */
	char **items; /* owned; into text */
	unsigned int count, left_out;
};

static void lines_done(struct lines *l)
{
	free(l->text);
	free(l->items);
}

/* Breaks a text into lines of the screen's width. 0 or -ENOMEM. */
static int break_lines(const char *text, struct lines *ret_lines)
{
	struct lines l = { 0 };
	size_t bytes, n = 0;
	FILE *out = open_memstream(&l.text, &bytes);
	FILE *wrapping =
		out ? wrap_open(out, terminal_columns(BRIEF_COLUMNS - BRIEF_CUT_COLUMNS)) : NULL;

	if (wrapping) {
		fputs(text, wrapping);
		wrap_close(wrapping);
	}
	if (out)
		fclose(out);
	for (size_t i = 0; wrapping && l.text && i < bytes; i++)
		n += l.text[i] == '\n';
	l.items = wrapping && l.text ? calloc(n + 1, sizeof(*l.items)) : NULL;
	if (!l.items) {
		lines_done(&l);
		return -ENOMEM;
	}
	for (char *at = l.text, *end; (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		if (*at)
			l.items[l.count++] = at;
	}
	*ret_lines = l;
	return 0;
}

/* Keeps at most `max` lines; the rest is left out. */
static void cut_lines(struct lines *l, unsigned int max)
{
	if (l->count <= max)
		return;
	l->left_out += l->count - max;
	l->count = max;
}

/*
 * Shortens a long headline, the first line of `text`, of which `l` has the broken lines. 0 or
 * -ENOMEM.
 */
static int cut_headline(struct lines *l, const char *text)
{
	const char *rest = strchr(text, '\n');
	struct lines after;
	unsigned int long_by;
	int r = break_lines(rest ? rest : "", &after);

	if (r < 0)
		return r;
	long_by = l->count - MIN(l->count, after.count);
	if (long_by > HEADLINE_LINES) {
		memmove(l->items + HEADLINE_LINES, l->items + long_by,
			after.count * sizeof(*l->items));
		l->count = HEADLINE_LINES + after.count;
		l->left_out = long_by - HEADLINE_LINES;
	}
	lines_done(&after);
	return 0;
}

/* Prints a part into its lines. 0 or -ENOMEM. */
static int make_part(struct session_lines *s, size_t part, struct lines *ret_lines)
{
	_cleanup_free_ char *text = NULL;
	FILE *out = s->out;
	size_t bytes;
	int r;

	s->out = open_memstream(&text, &bytes);
	if (s->out) {
		parts[part].print(s);
		fclose(s->out);
	}
	s->out = out;
	r = text ? break_lines(text, ret_lines) : -ENOMEM;
	if (r < 0)
		return r;
	if (part == 0)
		return cut_headline(ret_lines, text);
	cut_lines(ret_lines, parts[part].lines);
	return 0;
}

static void print_lines(const struct lines *l, const char *before, bool headline, FILE *out)
{
	for (unsigned int i = 0; i < l->count; i++) {
		bool cut = l->left_out && i + 1 == (headline ? HEADLINE_LINES : l->count);

		fprintf(out, "%s%s%s\n", before, l->items[i], cut ? BRIEF_CUT : "");
	}
}

/* Prints all parts, with blank lines between them if there is room, and the functions. */
static void print_parts(const struct lines *all, size_t n, const char *before, FILE *out)
{
	unsigned int count = LAST_LINES, blanks = 1;

	for (size_t i = 0; i < n; i++) {
		count += all[i].count;
		blanks += i && all[i].count;
	}
	blanks = count + blanks <= BRIEF_LINES ? 1 : 0;
	for (size_t i = 0; i < n; i++) {
		if (blanks && i && all[i].count)
			fputc('\n', out);
		print_lines(&all[i], before, i == 0, out);
	}
	if (blanks)
		fputc('\n', out);
	fputs("--full prints all of the evidence\n", out);
}

void brief_write(struct session_lines *s, const char *functions, const char *before)
{
	struct lines all[ARRAY_SIZE(parts) + 1] = { 0 };
	unsigned int used = LAST_LINES;
	size_t n = 0;
	int r = 0;

	for (; r == 0 && s->error == 0 && n < ARRAY_SIZE(parts); n++) {
		r = make_part(s, n, &all[n]);
		used += all[n].count;
	}
	if (r == 0 && functions) {
		r = break_lines(functions, &all[n]);
		cut_lines(&all[n], BRIEF_LINES - MIN(used, (unsigned int)BRIEF_LINES));
		n++;
	}
	if (r == 0 && s->error == 0)
		print_parts(all, n, before, s->out);
	for (size_t i = 0; i < n; i++)
		lines_done(&all[i]);
	session_lines_fail(s, r);
}
