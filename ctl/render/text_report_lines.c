/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints parts of a session's own lines: the pressure around it, and the ledger of its samples. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/macro.h"

static void add_value(struct text_table *table, const struct json_node *object, const char *key)
{
	text_table_add(table, member_text_value(key, json_node_get(object, key)));
}

/* Prints one decimal; the kernel reports two, and the lines have three. */
static void add_average(struct text_table *table, const struct json_node *kind, const char *key)
{
	const struct json_node *value = json_node_get(kind, key);

	if (json_node_is(value, JSON_REAL) || json_node_is(value, JSON_INTEGER))
		text_table_printf(table, "%.1f", json_node_double(value));
	else
		add_value(table, kind, key);
}

/* Adds {"some":{"avg10":..},"full":{..}} as two rows. */
static void add_pressure(struct text_table *table, const char *when,
			 const struct json_node *pressure)
{
	static const char *const kinds[] = { "some", "full" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct json_node *kind = json_node_get(pressure, kinds[i]);

		if (!kind)
			continue;
		text_table_words(table, (const char *const[]){ when, kinds[i] }, 2);
		add_average(table, kind, "avg10");
		add_average(table, kind, "avg60");
		add_average(table, kind, "avg300");
		add_value(table, kind, "total_us");
	}
}

void text_report_lines_pressure(struct session_lines *s)
{
	static const char *const heads[] = { "WHEN",	"KIND",	    "AVG10 %",
					     "AVG60 %", "AVG300 %", "STALLED IN ALL" };
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, ARRAY_SIZE(heads));
	text_table_words(&table, heads, ARRAY_SIZE(heads));
	add_pressure(&table, "before", json_node_get(s->pressure, "before"));
	add_pressure(&table, "at the trigger", json_node_get(s->pressure, "now"));
	add_pressure(&table, "at the end", json_node_get(s->end, "pressure_end"));
	if (table.count == ARRAY_SIZE(heads))
		return;
	section_head(s->out, "pressure", "as the kernel averages it");
	section_print(s, &table);
}

/*
 * Prints {"ring_full":1,"stale":2} as "ring full 1, stale 2"; `none` if the object is missing or
 * empty.
 */
static void put_counts(const struct json_node *counts, const char *none, FILE *out)
{
	unsigned int n = 0;

	for (const struct json_node *m = json_node_first(counts); m; m = json_node_next(m)) {
		_cleanup_free_ char *name = m->key ? text_tame(m->key, m->key_bytes) : NULL;
		_cleanup_free_ char *number = member_text_value("", m);

		for (char *c = name; c && *c; c++)
			*c = *c == '_' ? ' ' : *c;
		fprintf(out, "%s%s %s", n++ ? ", " : "", name ? name : "-", number ? number : "-");
	}
	if (!n)
		fputs(none, out);
}

static void put_signal(const struct json_node *ledger, FILE *out)
{
	_cleanup_free_ char *name = ledger->key ? text_tame(ledger->key, ledger->key_bytes) : NULL;

	fprintf(out, "  %s: ", name ? name : "-");
	member_text_put("{attempted} attempted, {emitted} emitted, lost: ", ledger, out);
	put_counts(json_node_get(ledger, "lost"), "nothing", out);
	if (json_node_is(json_node_get(ledger, "expected"), JSON_INTEGER))
		member_text_put("; expected during: {expected}", ledger, out);
	fputs("\n", out);
}

/* Prints a form for each element of an array. */
static void put_each(const struct json_node *array, const char *form, FILE *out)
{
	for (const struct json_node *one = json_node_first(array); one; one = json_node_next(one))
		member_text_put(form, one, out);
}

/* Prints how complete the stacks are, how they were unwound, and where they end too early. */
static void put_quality(const struct json_node *end, FILE *out)
{
	const struct json_node *quality = json_node_get(end, "stack_quality");

	if (quality)
		member_text_put("  samples by how far their stacks go: {complete} complete, "
				"{truncated} truncated, {broken} broken\n",
				quality, out);
	if (json_node_get(quality, "by_frame_pointers")) {
		member_text_put("  user stacks: {by_frame_pointers} by frame pointers; by call "
				"frame information: ",
				quality, out);
		put_counts(json_node_get(quality, "unwound"), "none", out);
		fputs("\n", out);
	}
	put_each(json_node_get(end, "modules_broken"),
		 "  stacks end too early in {module}: {samples} sample{samples:s}[reason? "
		 "({reason})]\n",
		 out);
}

/* Prints for each type how many lines the file has in addition to the kept ones. */
static void put_left_out(const struct store_session *session, FILE *out)
{
	uint64_t left_out = 0;

	for (size_t i = 0; i < STORE_TYPES; i++)
		left_out += session->lines[i].left_out;
	if (left_out)
		fprintf(out,
			"\n%" PRIu64
			" lines of this session are left out: more than %d of one type\n",
			left_out, STORE_LINES);
}

void text_report_lines_ledger(struct session_lines *s)
{
	const struct json_node *ledger = json_node_get(s->end, "ledger");

	put_left_out(s->session, s->out);
	if (!s->end)
		return;
	section_head(s->out, "ledger", "what was attempted, emitted and lost");
	for (const struct json_node *m = json_node_first(ledger); m; m = json_node_next(m))
		put_signal(m, s->out);
	put_each(json_node_get(s->end, "modules_unnamed"),
		 "  without names: {frames} frame{frames:s} of {module} ({why})\n", s->out);
	put_quality(s->end, s->out);
}
