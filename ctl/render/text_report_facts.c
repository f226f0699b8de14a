/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the kernel's counters that changed, by phase, and the limits. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/macro.h"

#define FACTS_LINES 16 /* lines of a table; the agent writes one per source */

static const char *const phases[] = { "before", "onset", "during" };

/* One counter of the source, or of one of its devices. */
struct counter {
	const struct json_node *phases; /* of the line */
	const char *source;
	const struct json_node *device; /* NULL: of the source itself */
	const char *key;
};

/* Returns the object of a phase with the counter: the phase itself, or its device. */
static const struct json_node *find_holder(const struct counter *c, const char *phase)
{
	const struct json_node *in = json_node_get(c->phases, phase), *device;

	if (!c->device)
		return in;
	device = json_node_first(json_node_get(in, "devices"));
	while (device &&
	       !json_node_equals(json_node_get(device, "device"), json_node_string(c->device)))
		device = json_node_next(device);
	return device;
}

static bool has_moved(const struct counter *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
		if (json_node_u64(json_node_get(find_holder(c, phases[i]), c->key)))
			return true;
	return false;
}

/* Adds the row of a counter that changed in some phase. */
static void add_counter(struct text_table *table, const struct counter *c)
{
	_cleanup_free_ char *label = member_text_label(c->key);
	_cleanup_free_ char *device = c->device ? member_text_value("", c->device) : NULL;

	if (!has_moved(c))
		return;
	text_table_printf(table, "%s %s%s%s", c->source, device ? device : "", device ? " " : "",
			  label ? label : c->key);
	for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
		text_table_add(table,
			       member_text_value(c->key,
						 json_node_get(find_holder(c, phases[i]), c->key)));
}

/* Adds the counters of an object of the last phase. */
static void add_object(struct text_table *table, const struct json_node *all, const char *source,
		       const struct json_node *object)
{
	const struct json_node *device = json_node_get(object, "device");

	if (!json_node_is(device, JSON_STRING))
		device = NULL;
	for (const struct json_node *m = json_node_first(object); m; m = json_node_next(m)) {
		_cleanup_free_ char *key = m->key ? strndup(m->key, m->key_bytes) : NULL;

		if (key && json_node_is(m, JSON_INTEGER) && strcmp(key, "ms") != 0)
			add_counter(table, &(struct counter){ all, source, device, key });
	}
}

static void add_line(struct text_table *table, const struct json_node *line)
{
	_cleanup_free_ char *source = member_text_value("source", json_node_get(line, "source"));
	const struct json_node *all = json_node_get(line, "phases");
	const struct json_node *during = json_node_get(all, "during");

	if (!source)
		return;
	add_object(table, all, source, during);
	for (const struct json_node *d = json_node_first(json_node_get(during, "devices")); d;
	     d = json_node_next(d))
		add_object(table, all, source, d);
}

/* Returns the head of a phase, with its length in the first line that has it: "DURING 2.0 s". */
static char *format_head(const struct json_node *const lines[FACTS_LINES], const char *phase)
{
	const struct json_node *ms = NULL;
	_cleanup_free_ char *text = NULL;
	char *head;

	for (size_t i = 0; !ms && i < FACTS_LINES; i++)
		ms = json_node_get(json_node_get(json_node_get(lines[i], "phases"), phase), "ms");
	text = ms ? member_text_value("_ms", ms) : NULL;
	if (asprintf(&head, "%s%s%s", phase, text ? " " : "", text ? text : "") < 0)
		return NULL;
	for (char *c = head; *c && *c != ' '; c++)
		*c = (char)(*c - 'a' + 'A');
	return head;
}

/* Prints the limits under `key`; omits values that mean "no limit". */
static void put_limits(const struct json_node *line, const char *key_of, const char *when,
		       FILE *out)
{
	_cleanup_free_ char *source = member_text_value("source", json_node_get(line, "source"));
	_cleanup_free_ char *from = member_text_value("", json_node_get(line, "from_cgroup"));
	const struct json_node *limits = json_node_get(line, key_of);
	unsigned int n = 0;

	for (const struct json_node *m = json_node_first(limits); m; m = json_node_next(m)) {
		_cleanup_free_ char *key = m->key ? strndup(m->key, m->key_bytes) : NULL;
		_cleanup_free_ char *label = key ? member_text_label(key) : NULL;
		_cleanup_free_ char *text = key ? member_text_value(key, m) : NULL;

		if (!text || !label || json_node_is(m, JSON_NULL) ||
		    (json_node_is(m, JSON_ARRAY) && !json_node_first(m)) ||
		    !strcmp(key, "period_us"))
			continue;
		if (n++)
			fputs(", ", out);
		else
			fprintf(out, "  limits of %s%s%s%s: ", source ? source : "-",
				from ? " in v1 cgroup " : "", from ? from : "", when);
		fprintf(out, "%s %s", label, text);
	}
	if (n)
		fputs("\n", out);
	else if (limits && *when)
		fprintf(out, "  limits of %s%s: none\n", source ? source : "-", when);
}

static void put_both_limits(const struct json_node *line, FILE *out)
{
	put_limits(line, "limits", "", out);
	put_limits(line, "limits_end", " at the end", out);
}

static void print_lines(struct session_lines *s, const struct json_node *const lines[FACTS_LINES])
{
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, 1 + ARRAY_SIZE(phases));
	text_table_add(&table, strdup("FACT"));
	for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
		text_table_add(&table, format_head(lines, phases[i]));
	for (size_t i = 0; i < FACTS_LINES; i++)
		if (lines[i])
			add_line(&table, lines[i]);
	section_head(s->out, "facts", "the kernel's own counters that moved");
	if (table.count > 1 + ARRAY_SIZE(phases))
		section_print(s, &table);
	for (size_t i = 0; i < FACTS_LINES; i++)
		if (lines[i])
			put_both_limits(lines[i], s->out);
}

void text_report_facts(struct session_lines *s)
{
	const struct store_lines *facts = &s->session->facts;
	struct json_tree trees[FACTS_LINES] = { 0 };
	const struct json_node *lines[FACTS_LINES] = { 0 };

	for (size_t i = 0; i < MIN(facts->count, (uint32_t)FACTS_LINES); i++)
		lines[i] = session_lines_read(s, facts->items[i], &trees[i]);
	if (facts->count)
		print_lines(s, lines);
	for (size_t i = 0; i < FACTS_LINES; i++)
		json_tree_done(&trees[i]);
	if (facts->count > FACTS_LINES)
		fprintf(s->out, "  and %" PRIu32 " more lines \"facts\"\n",
			facts->count - FACTS_LINES);
}
