/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints parts of a session's own lines: the pressure around it, and the ledger of its samples. */
#include "ctl/render/text_report_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

const struct json_node *text_report_lines_read(const struct store *s, uint32_t line,
					       struct json_tree *ret_tree)
{
	struct json_fault fault;
	const char *data;
	size_t bytes;

	if (line == STORE_NONE)
		return NULL;
	data = pool_get(&s->texts, line, &bytes);
	if (json_tree_read(data, bytes, JSON_READER_NESTING, ret_tree, &fault) < 0)
		return NULL;
	return ret_tree->nodes;
}

static void put_value(const struct json_node *object, const char *key, FILE *out)
{
	_cleanup_free_ char *text = member_text_value(key, json_node_get(object, key));

	fputs(text ? text : "-", out);
}

static void add_value(struct text_table *table, const struct json_node *object, const char *key)
{
	text_table_add(table, member_text_value(key, json_node_get(object, key)));
}

/* Prints one decimal; the kernel reports two, and the lines have three. */
static void add_average(struct text_table *table, const struct json_node *kind, const char *key)
{
	const struct json_node *value = json_node_get(kind, key);
	char text[32];

	if (!json_node_is(value, JSON_REAL) && !json_node_is(value, JSON_INTEGER)) {
		add_value(table, kind, key);
		return;
	}
	snprintf(text, sizeof(text), "%.1f", json_node_double(value));
	text_table_add(table, strdup(text));
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
		text_table_add(table, strdup(when));
		text_table_add(table, strdup(kinds[i]));
		add_average(table, kind, "avg10");
		add_average(table, kind, "avg60");
		add_average(table, kind, "avg300");
		add_value(table, kind, "total_us");
	}
}

int text_report_lines_pressure(const struct store *store, const struct store_session *session,
			       FILE *out)
{
	static const char *const heads[] = { "WHEN",	"KIND",	    "AVG10 %",
					     "AVG60 %", "AVG300 %", "STALLED IN ALL" };
	_cleanup_(json_tree_done) struct json_tree line_tree = { 0 }, end_tree = { 0 };
	const struct json_node *line = text_report_lines_read(store, session->pressure, &line_tree);
	const struct json_node *end = text_report_lines_read(store, session->end, &end_tree);
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, ARRAY_SIZE(heads));
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		text_table_add(&table, strdup(heads[i]));
	add_pressure(&table, "before", json_node_get(line, "before"));
	add_pressure(&table, "at the trigger", json_node_get(line, "now"));
	add_pressure(&table, "at the end", json_node_get(end, "pressure_end"));
	if (table.count == ARRAY_SIZE(heads))
		return 0;
	section_head(out, "pressure", "as the kernel averages it");
	return text_table_print(&table, 2, out);
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
	put_value(ledger, "attempted", out);
	fputs(" attempted, ", out);
	put_value(ledger, "emitted", out);
	fputs(" emitted, lost: ", out);
	put_counts(json_node_get(ledger, "lost"), "nothing", out);
	if (json_node_is(json_node_get(ledger, "expected"), JSON_INTEGER)) {
		fputs("; expected during: ", out);
		put_value(ledger, "expected", out);
	}
	fputs("\n", out);
}

static void put_unnamed(const struct json_node *modules, FILE *out)
{
	for (const struct json_node *module = json_node_first(modules); module;
	     module = json_node_next(module)) {
		const struct json_node *one = json_node_get(module, "frames");

		fputs("  without names: ", out);
		put_value(module, "frames", out);
		fputs(json_node_i64(one) == 1 ? " frame of " : " frames of ", out);
		put_value(module, "module", out);
		fputs(" (", out);
		put_value(module, "why", out);
		fputs(")\n", out);
	}
}

/* Prints where stacks end too early. */
static void put_broken(const struct json_node *modules, FILE *out)
{
	for (const struct json_node *module = json_node_first(modules); module;
	     module = json_node_next(module)) {
		fputs("  stacks end too early in ", out);
		put_value(module, "module", out);
		fputs(": ", out);
		put_value(module, "samples", out);
		fputs(json_node_i64(json_node_get(module, "samples")) == 1 ? " sample" : " samples",
		      out);
		if (json_node_get(module, "reason")) {
			fputs(" (", out);
			put_value(module, "reason", out);
			fputs(")", out);
		}
		fputs("\n", out);
	}
}

/* Prints the methods of user stack unwinding, and how far the second one came. */
static void put_means(const struct json_node *quality, FILE *out)
{
	if (!json_node_get(quality, "by_frame_pointers"))
		return;
	fputs("  user stacks: ", out);
	put_value(quality, "by_frame_pointers", out);
	fputs(" by frame pointers; by call frame information: ", out);
	put_counts(json_node_get(quality, "unwound"), "none", out);
	fputs("\n", out);
}

/* Prints how complete the stacks are. */
static void put_quality(const struct json_node *end, FILE *out)
{
	static const char *const keys[] = { "complete", "truncated", "broken" };
	const struct json_node *quality = json_node_get(end, "stack_quality");

	for (size_t i = 0; quality && i < ARRAY_SIZE(keys); i++) {
		fputs(i ? ", " : "  samples by how far their stacks go: ", out);
		put_value(quality, keys[i], out);
		fprintf(out, " %s%s", keys[i], i + 1 == ARRAY_SIZE(keys) ? "\n" : "");
	}
	put_means(quality, out);
	put_broken(json_node_get(end, "modules_broken"), out);
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

int text_report_lines_ledger(const struct store *store, const struct store_session *session,
			     FILE *out)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	const struct json_node *end = text_report_lines_read(store, session->end, &tree);
	const struct json_node *ledger = json_node_get(end, "ledger");

	put_left_out(session, out);
	if (!end)
		return session->end == STORE_NONE ? 0 : -ENOMEM;
	section_head(out, "ledger", "what was attempted, emitted and lost");
	for (const struct json_node *m = json_node_first(ledger); m; m = json_node_next(m))
		put_signal(m, out);
	put_unnamed(json_node_get(end, "modules_unnamed"), out);
	put_quality(end, out);
	return 0;
}
