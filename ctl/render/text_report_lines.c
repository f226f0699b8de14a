/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session's own lines say: the pressure around it, and the account of its samples. */
#include "ctl/render/text_report_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
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

char *text_report_lines_text(const struct store *s, uint32_t text)
{
	const char *data;
	size_t bytes;

	if (text == STORE_NONE)
		return strdup("-");
	data = pool_get(&s->texts, text, &bytes);
	return text_tame(data, bytes);
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

/* The kernel gives two decimals, the lines three: a person reads one. */
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

/* {"some":{"avg10":..},"full":{..}} as two rows. */
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

static void put_held_one(const char *when, const char *what, uint64_t triggers, uint64_t sum_ms,
			 uint64_t largest_ms, FILE *out)
{
	char sum[TEXT_UNIT_BYTES], largest[TEXT_UNIT_BYTES];

	fprintf(out, "held back %s: %s, %" PRIu64 " trigger%s", when, what, triggers,
		triggers == 1 ? "" : "s");
	if (sum_ms || largest_ms)
		fprintf(out, ", stalled for %s, at most %s at once",
			text_duration_us(MIN(sum_ms, UINT64_MAX / 1000) * 1000, sum),
			text_duration_us(MIN(largest_ms, UINT64_MAX / 1000) * 1000, largest));
	fputs("\n", out);
}

/* What the stacks do not show, because no session began for it: while it ran, and after it. */
static void put_held(const struct store_session *session, const struct json_node *end, FILE *out)
{
	static const char *const causes[] = { "cpu", "memory", "io", "without pressure" };
	const struct json_node *held = json_node_first(json_node_get(end, "held"));

	for (; held; held = json_node_next(held)) {
		const char *key = json_node_get(held, "resource") ? "resource" : "trigger";
		_cleanup_free_ char *what = member_text_value(key, json_node_get(held, key));

		put_held_one("while it ran", what ? what : "-",
			     json_node_u64(json_node_get(held, "triggers")),
			     json_node_u64(json_node_get(held, "sum_ms")),
			     json_node_u64(json_node_get(held, "largest_ms")), out);
	}
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		if (session->held[i].triggers)
			put_held_one("in its cooldown", causes[i], session->held[i].triggers,
				     session->held[i].sum_ms, session->held[i].largest_ms, out);
}

int text_report_lines_held(const struct store *store, const struct store_session *session,
			   FILE *out)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	const struct json_node *end = text_report_lines_read(store, session->end, &tree);

	if (!end && session->end != STORE_NONE)
		return -ENOMEM;
	put_held(session, end, out);
	return 0;
}

int text_report_lines_pressure(const struct store *store, const struct store_session *session,
			       FILE *out)
{
	static const char *const heads[] = { "PRESSURE", "KIND",     "AVG10 %",
					     "AVG60 %",	 "AVG300 %", "STALLED IN ALL" };
	_cleanup_(json_tree_done) struct json_tree line_tree = { 0 }, end_tree = { 0 };
	const struct json_node *line = text_report_lines_read(store, session->pressure, &line_tree);
	const struct json_node *end = text_report_lines_read(store, session->end, &end_tree);
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, ARRAY_SIZE(heads));
	if (line) {
		fputs("\ntrigger: ", out);
		put_value(line, "resource", out);
		fputs(" ", out);
		put_value(line, "kind", out);
		fputs(", stalled for ", out);
		put_value(line, "stall_ms", out);
		fputs(" of ", out);
		put_value(line, "measured_ms", out);
		fputs("; the rule allows ", out);
		put_value(line, "threshold_ms", out);
		fputs(" of ", out);
		put_value(line, "window_ms", out);
		fputs("\n", out);
	}
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		text_table_add(&table, strdup(heads[i]));
	add_pressure(&table, "before", json_node_get(line, "before"));
	add_pressure(&table, "at the trigger", json_node_get(line, "now"));
	add_pressure(&table, "at the end", json_node_get(end, "pressure_end"));
	if (table.count == ARRAY_SIZE(heads))
		return 0;
	fputs("\n", out);
	return text_table_print(&table, 2, out);
}

/* {"ring_full":1,"stale":2} as "ring full 1, stale 2"; `none` for no such thing, or an empty one.
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
	fputs("; expected during: ", out);
	put_value(ledger, "expected", out);
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

/* Where stacks end too early. */
static void put_broken(const struct json_node *modules, FILE *out)
{
	for (const struct json_node *module = json_node_first(modules); module;
	     module = json_node_next(module)) {
		fputs("  stacks end too early in ", out);
		put_value(module, "module", out);
		fputs(": ", out);
		put_value(module, "samples", out);
		fputs(" samples", out);
		if (json_node_get(module, "reason")) {
			fputs(" (", out);
			put_value(module, "reason", out);
			fputs(")", out);
		}
		fputs("\n", out);
	}
}

/* By which means user stacks were followed, and how far the second one came. */
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

/* How far the stacks go, and what would help where they do not. */
static void put_quality(const struct json_node *end, FILE *out)
{
	static const char *const keys[] = { "complete", "truncated", "broken" };
	const struct json_node *quality = json_node_get(end, "stack_quality");
	const struct json_node *advice = json_node_first(json_node_get(end, "advice"));

	for (size_t i = 0; quality && i < ARRAY_SIZE(keys); i++) {
		fputs(i ? ", " : "  samples by how far their stacks go: ", out);
		put_value(quality, keys[i], out);
		fprintf(out, " %s%s", keys[i], i + 1 == ARRAY_SIZE(keys) ? "\n" : "");
	}
	put_means(quality, out);
	put_broken(json_node_get(end, "modules_broken"), out);
	for (; advice; advice = json_node_next(advice)) {
		_cleanup_free_ char *text = member_text_value("", advice);

		fprintf(out, "  advice: %s\n", text ? text : "-");
	}
}

/*
 * How much time of the stall the evidence stands for: what ran, and what waited for what stalled.
 * Little proves that something else explains the stall.
 */
static void put_explained(const struct json_node *end, FILE *out)
{
	const struct json_node *explained = json_node_get(end, "explained");

	if (!explained)
		return;
	fprintf(out, "  explained: %.0f %%%s of ", 100 * json_node_double(explained),
		json_node_double(explained) < 1 ? "" : " or more");
	put_value(end, "stalled_ms", out);
	fputs(" that were stalled\n", out);
}

int text_report_lines_account(const struct store *store, const struct store_session *session,
			      FILE *out)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	const struct json_node *end = text_report_lines_read(store, session->end, &tree);
	const struct json_node *ledger = json_node_get(end, "ledger");

	if (!end)
		return session->end == STORE_NONE ? 0 : -ENOMEM;
	fputs("\naccount: ", out);
	put_value(end, "verdict", out);
	if (json_node_get(end, "verdict_reason")) {
		fputs(", ", out);
		put_value(end, "verdict_reason", out);
	}
	fputs("\n", out);
	put_explained(end, out);
	for (const struct json_node *m = json_node_first(ledger); m; m = json_node_next(m))
		put_signal(m, out);
	put_unnamed(json_node_get(end, "modules_unnamed"), out);
	put_quality(end, out);
	return 0;
}
