/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session's own lines say: the pressure around it, and the account of its samples. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/report.h"
#include "ctl/show.h"
#include "ctl/text.h"
#include "shared/cleanup.h"
#include "shared/macro.h"

static void put_object(json_object **object)
{
	json_object_put(*object);
}

static void free_tokener(json_tokener **tokener)
{
	if (*tokener)
		json_tokener_free(*tokener);
}

/* A kept line as an object; NULL when there is none. The reader has checked that it is JSON. */
static json_object *parse_line(const struct store *s, uint32_t line)
{
	_cleanup_(free_tokener) json_tokener *tokener =
		json_tokener_new_ex(JSON_READER_NESTING + 1);
	const char *data;
	size_t bytes;

	if (line == STORE_NONE || !tokener)
		return NULL;
	data = pool_get(&s->texts, line, &bytes);
	return json_tokener_parse_ex(tokener, data, (int)bytes);
}

static json_object *get(json_object *object, const char *key)
{
	json_object *value = NULL;

	if (json_object_is_type(object, json_type_object))
		json_object_object_get_ex(object, key, &value);
	return value;
}

static void put_value(json_object *object, const char *key, FILE *out)
{
	_cleanup_free_ char *text = show_value(key, get(object, key));

	fputs(text ? text : "-", out);
}

static void add_value(struct text_table *table, json_object *object, const char *key)
{
	text_table_add(table, show_value(key, get(object, key)));
}

/* The kernel gives two decimals, the lines three: a person reads one. */
static void add_average(struct text_table *table, json_object *kind, const char *key)
{
	json_object *value = get(kind, key);
	char text[32];

	if (!json_object_is_type(value, json_type_double) &&
	    !json_object_is_type(value, json_type_int)) {
		add_value(table, kind, key);
		return;
	}
	snprintf(text, sizeof(text), "%.1f", json_object_get_double(value));
	text_table_add(table, strdup(text));
}

/* {"some":{"avg10":..},"full":{..}} as two rows. */
static void add_pressure(struct text_table *table, const char *when, json_object *pressure)
{
	static const char *const kinds[] = { "some", "full" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		json_object *kind = get(pressure, kinds[i]);

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

int report_pressure(const struct store *store, const struct store_session *session, FILE *out)
{
	static const char *const heads[] = { "PRESSURE", "KIND",     "AVG10 %",
					     "AVG60 %",	 "AVG300 %", "STALLED IN ALL" };
	_cleanup_(put_object) json_object *line = parse_line(store, session->pressure);
	_cleanup_(put_object) json_object *end = parse_line(store, session->end);
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, ARRAY_SIZE(heads));
	if (line) {
		fputs("trigger: ", out);
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
	add_pressure(&table, "before", get(line, "before"));
	add_pressure(&table, "at the trigger", get(line, "now"));
	add_pressure(&table, "at the end", get(end, "pressure_end"));
	if (table.count == ARRAY_SIZE(heads))
		return 0;
	fputs("\n", out);
	return text_table_print(&table, 2, out);
}

/* {"ring_full":1,"stale":2} as "ring full 1, stale 2"; `none` for no such thing, or an empty one.
 */
static void put_counts(json_object *counts, const char *none, FILE *out)
{
	unsigned int n = 0;

	if (json_object_is_type(counts, json_type_object)) {
		json_object_object_foreach(counts, key, value)
		{
			_cleanup_free_ char *name = text_tame(key, strlen(key));
			_cleanup_free_ char *number = show_value("", value);

			for (char *c = name; c && *c; c++)
				*c = *c == '_' ? ' ' : *c;
			fprintf(out, "%s%s %s", n++ ? ", " : "", name ? name : "-",
				number ? number : "-");
		}
	}
	if (!n)
		fputs(none, out);
}

static void put_signal(const char *signal, json_object *ledger, FILE *out)
{
	_cleanup_free_ char *name = text_tame(signal, strlen(signal));

	fprintf(out, "  %s: ", name ? name : "-");
	put_value(ledger, "attempted", out);
	fputs(" attempted, ", out);
	put_value(ledger, "emitted", out);
	fputs(" emitted, lost: ", out);
	put_counts(get(ledger, "lost"), "nothing", out);
	fputs("; expected during: ", out);
	put_value(ledger, "expected", out);
	fputs("\n", out);
}

static void put_unnamed(json_object *modules, FILE *out)
{
	size_t n = json_object_is_type(modules, json_type_array) ? json_object_array_length(modules)
								 : 0;

	for (size_t i = 0; i < n; i++) {
		json_object *module = json_object_array_get_idx(modules, i), *one;

		fputs("  without names: ", out);
		put_value(module, "frames", out);
		one = get(module, "frames");
		fputs(json_object_get_int64(one) == 1 ? " frame of " : " frames of ", out);
		put_value(module, "module", out);
		fputs(" (", out);
		put_value(module, "why", out);
		fputs(")\n", out);
	}
}

/* Where stacks end too early. */
static void put_broken(json_object *modules, FILE *out)
{
	size_t n = json_object_is_type(modules, json_type_array) ? json_object_array_length(modules)
								 : 0;

	for (size_t i = 0; i < n; i++) {
		json_object *module = json_object_array_get_idx(modules, i);

		fputs("  stacks end too early in ", out);
		put_value(module, "module", out);
		fputs(": ", out);
		put_value(module, "samples", out);
		fputs(" samples", out);
		if (get(module, "reason")) {
			fputs(" (", out);
			put_value(module, "reason", out);
			fputs(")", out);
		}
		fputs("\n", out);
	}
}

/* By which means user stacks were followed, and how far the second one came. */
static void put_means(json_object *quality, FILE *out)
{
	if (!get(quality, "by_frame_pointers"))
		return;
	fputs("  user stacks: ", out);
	put_value(quality, "by_frame_pointers", out);
	fputs(" by frame pointers; by call frame information: ", out);
	put_counts(get(quality, "unwound"), "none", out);
	fputs("\n", out);
}

/* How far the stacks go, and what would help where they do not. */
static void put_quality(json_object *end, FILE *out)
{
	static const char *const keys[] = { "complete", "truncated", "broken" };
	json_object *quality = get(end, "stack_quality"), *advice = get(end, "advice");
	size_t n =
		json_object_is_type(advice, json_type_array) ? json_object_array_length(advice) : 0;

	for (size_t i = 0; quality && i < ARRAY_SIZE(keys); i++) {
		fputs(i ? ", " : "  samples by how far their stacks go: ", out);
		put_value(quality, keys[i], out);
		fprintf(out, " %s%s", keys[i], i + 1 == ARRAY_SIZE(keys) ? "\n" : "");
	}
	put_means(quality, out);
	put_broken(get(end, "modules_broken"), out);
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *text = show_value("", json_object_array_get_idx(advice, i));

		fprintf(out, "  advice: %s\n", text ? text : "-");
	}
}

int report_account(const struct store *store, const struct store_session *session, FILE *out)
{
	_cleanup_(put_object) json_object *end = parse_line(store, session->end);
	json_object *ledger = get(end, "ledger");

	if (!end)
		return session->end == STORE_NONE ? 0 : -ENOMEM;
	fputs("\naccount: ", out);
	put_value(end, "verdict", out);
	if (get(end, "verdict_reason")) {
		fputs(", ", out);
		put_value(end, "verdict_reason", out);
	}
	fputs("\n", out);
	if (json_object_is_type(ledger, json_type_object)) {
		json_object_object_foreach(ledger, signal, value)
		{
			put_signal(signal, value, out);
		}
	}
	put_unnamed(get(end, "modules_unnamed"), out);
	put_quality(end, out);
	return 0;
}
