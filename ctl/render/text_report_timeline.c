/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the states of each pool's threads over time. */
#include "ctl/render/text_report_timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "ctl/render/timeline_line.h"
#include "shared/tools/macro.h"

#define POOLS_TOP   6
#define LABEL	    13	 /* columns before a strip */
#define COLUMNS	    80	 /* of unlimited lines */
#define LEAST_PART  0.02 /* of the most threads: a part that never exceeds it is not shown */
#define STRIP_MAX   (TIMELINE_LINE_SLOTS + 1)
#define LEVEL_BYTES 3 /* of U+2581 to U+2588 in UTF-8 */
#define EIGHTHS	    8

/* The mapping of slots to columns; the trigger has its own column. */
struct strip {
	uint32_t slots, before; /* of the lines */
	uint32_t columns, left; /* columns of the strip; those before the trigger */
	double slot_ms, column_ms;
};

static void make_strip(const struct timeline_line *line, struct strip *ret_strip)
{
	uint32_t room = terminal_columns(COLUMNS) - LABEL - 1;
	uint32_t columns = MIN(line->slots, room);
	uint32_t left = (uint32_t)((double)columns * line->before / line->slots + 0.5);

	/* A side has a column if it has slots, else none. */
	left = line->before ? MAX(left, 1u) : 0;
	left = line->before < line->slots ? MIN(left, columns - 1) : columns;
	*ret_strip = (struct strip){
		.slots = line->slots,
		.before = line->before,
		.columns = columns,
		.left = left,
		.slot_ms = line->slot_ms,
		.column_ms = line->slot_ms * line->slots / columns,
	};
}

/* Returns the mean of a row over the slots of a column. */
static double mean_of(const struct strip *s, const double *row, uint32_t column)
{
	bool left = column < s->left;
	uint32_t slots = left ? s->before : s->slots - s->before;
	uint32_t columns = left ? s->left : s->columns - s->left;
	double each = (double)slots / columns, sum = 0;
	double from = (column - (left ? 0 : s->left)) * each + (left ? 0 : s->before);
	double to = from + each;

	for (uint32_t i = (uint32_t)from; i < s->slots && i < to; i++)
		sum += row[i] * (MIN(to, i + 1.0) - MAX(from, (double)i));
	return sum / each;
}

static void put_level(double share, FILE *out)
{
	static const char plain[] = "_-=+*#";
	unsigned int levels = terminal_get()->utf8 ? EIGHTHS : sizeof(plain) - 1;
	unsigned int level = (unsigned int)(MIN(share, 1.0) * levels + 0.5);
	char block[LEVEL_BYTES + 1] = "\xe2\x96\x80";

	level = MAX(level, 1u);
	block[LEVEL_BYTES - 1] = (char)(block[LEVEL_BYTES - 1] + (int)level);
	if (terminal_get()->utf8)
		fputs(block, out);
	else
		fputc(plain[level - 1], out);
}

/*
 * Draws one column; `blanks` pending blanks are printed before the next column that is not empty.
 */
static void put_column(const struct strip *s, const struct timeline_line *line,
		       enum timeline_part part, uint32_t column, double threads,
		       unsigned int *blanks, FILE *out)
{
	double ms = mean_of(s, line->ms[part], column);
	/* Without a sampling pass, an empty slot proves nothing. */
	bool known = part == TIMELINE_RUNNING || mean_of(s, line->looks, column) > 0;

	if (ms <= 0 && known) {
		(*blanks)++;
		return;
	}
	fprintf(out, "%*s", (int)*blanks, "");
	*blanks = 0;
	if (ms > 0)
		put_level(ms / line->slot_ms / threads, out);
	else
		fputs(terminal_get()->utf8 ? "\xc2\xb7" : ".", out);
}

static void put_row(const struct strip *s, const struct timeline_line *line,
		    enum timeline_part part, double threads, FILE *out)
{
	const char *style = terminal_on(STYLE_RUNNING + (enum terminal_style)part);
	unsigned int blanks = 0;

	fprintf(out, "    %-*s%s", LABEL - 4, timeline_line_word(part), style);
	for (uint32_t c = 0; c <= s->columns; c++) {
		if (c == s->left) {
			fprintf(out, "%*s%s|%s", (int)blanks, "", terminal_off(), style);
			blanks = 0;
		}
		if (c < s->columns)
			put_column(s, line, part, c, threads, &blanks, out);
	}
	fprintf(out, "%s\n", terminal_off());
}

/* Returns whether the part gets a strip. */
static bool is_shown(const struct timeline_line *line, enum timeline_part part, double threads)
{
	if (timeline_line_is_rest(part))
		return false;
	for (uint32_t i = 0; i < line->slots; i++)
		if (line->ms[part][i] >= LEAST_PART * threads * line->slot_ms)
			return true;
	return false;
}

static bool does_something(const struct timeline_line *line)
{
	for (int part = 0; part < TIMELINE_PARTS_; part++)
		if (is_shown(line, (enum timeline_part)part, timeline_line_threads(line)))
			return true;
	return false;
}

static void put_pool(const struct strip *s, const struct timeline_line *line, FILE *out)
{
	_cleanup_free_ char *name = line->pool ? member_text_value("pool", line->pool) : NULL;
	double threads = timeline_line_threads(line);

	if (line->pool)
		fprintf(out, "  %s (%" PRIu64 "), %.0f thread%s\n", name ? name : "-", line->pid,
			threads, threads > 1 ? "s at once" : "");
	else
		fprintf(out, "  %" PRIu64 " more pools, %.0f threads at once\n", line->others,
			threads);
	for (int part = 0; part < TIMELINE_PARTS_; part++)
		if (is_shown(line, (enum timeline_part)part, threads))
			put_row(s, line, (enum timeline_part)part, threads, out);
}

/* Prints "-5.0 s ------~~~|trigger------ +3.0 s"; '~' is the onset. */
static void put_ruler(const struct strip *s, uint64_t onset_ms, FILE *out)
{
	char ruler[STRIP_MAX + 1], text[32];
	uint32_t onset = (uint32_t)MIN((double)onset_ms / s->column_ms + 0.5, (double)s->left);
	size_t bytes;

	memset(ruler, '-', s->columns);
	memset(ruler + s->left - onset, '~', onset);
	ruler[s->columns] = 0;
	bytes = (size_t)snprintf(text, sizeof(text), "-%.1f s ", s->before * s->slot_ms / 1000);
	if (bytes <= s->left - onset)
		memcpy(ruler, text, bytes);
	bytes = (size_t)snprintf(text, sizeof(text), " +%.1f s",
				 (s->slots - s->before) * s->slot_ms / 1000);
	if (bytes <= s->columns - s->left)
		memcpy(ruler + s->columns - bytes, text, bytes);
	fprintf(out, "%*s%s%.*s|%s%s\n", LABEL, "", terminal_on(STYLE_QUIET), (int)s->left, ruler,
		ruler + s->left, terminal_off());
}

static void put_head(const struct strip *s, uint64_t onset_ms, bool brief, FILE *out)
{
	const char *onset = onset_ms ? ", ~ the onset" : "";
	char each[TEXT_UNIT_BYTES];

	text_duration_us((uint64_t)(s->column_ms * 1000), each);
	if (brief)
		section_head(out, "timeline", "a column is %s, | is the trigger%s", each, onset);
	else
		section_head(
			out, "timeline",
			"states of threads over time; a column is %s, | is the trigger%s; full "
			"height is all threads of the pool; %s is not sampled",
			each, onset, terminal_get()->utf8 ? "\xc2\xb7" : ".");
	put_ruler(s, onset_ms, out);
}

void text_report_timeline(struct session_lines *s)
{
	const struct json_node *root;
	struct timeline_line line;
	uint32_t shown = 0;
	struct strip strip;

	session_lines_for_each (root, s, &s->session->timelines, STORE_LINES) {
		if (!timeline_line_read(root, &line) || !does_something(&line) ||
		    shown++ >= POOLS_TOP)
			continue;
		make_strip(&line, &strip);
		if (shown == 1)
			put_head(&strip, s->session->length_ms[STORE_ONSET], false, s->out);
		put_pool(&strip, &line, s->out);
	}
	section_more(s->out, shown, POOLS_TOP);
}

/* Returns the time of the pool without rest, and without locks, where idle pools wait too. */
static double sum_busy(const struct timeline_line *line)
{
	double ms = 0;

	for (int part = 0; part < TIMELINE_PARTS_; part++)
		if (part != TIMELINE_LOCK && !timeline_line_is_rest((enum timeline_part)part))
			ms += timeline_line_sum(line, (enum timeline_part)part);
	return ms;
}

void text_report_timeline_busiest(struct session_lines *s)
{
	struct timeline_line line;
	const struct json_node *root;
	double most = -1;
	struct strip strip;

	/* A line lives only for its turn, so the chosen one is read again. */
	for (int again = 0; again < 2; again++)
		session_lines_for_each (root, s, &s->session->timelines, STORE_LINES) {
			if (!timeline_line_read(root, &line) || !does_something(&line))
				continue;
			if (!again) {
				most = MAX(most, sum_busy(&line));
			} else if (sum_busy(&line) >= most) {
				most = INFINITY;
				make_strip(&line, &strip);
				put_head(&strip, s->session->length_ms[STORE_ONSET], true, s->out);
				put_pool(&strip, &line, s->out);
			}
		}
}
