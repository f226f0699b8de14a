/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/columns.h"
#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/cli/text_width.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* Prints a table of the items of an array; `none` if there are no items. */
static int show_table(const struct json_node *items, const struct column *columns, unsigned int n,
		      const char *none, unsigned int indent, FILE *out)
{
	_cleanup_(text_table_done) struct text_table table;

	columns_begin(&table, columns, n);
	if (!json_node_elements(items)) {
		fprintf(out, "%*s%s\n", (int)indent, "", none);
		return 0;
	}
	for (const struct json_node *m = json_node_first(items); m; m = json_node_next(m))
		columns_add(&table, columns, m);
	return text_table_print(&table, indent, out);
}

int show_watches(const struct json_node *watches, FILE *out)
{
	static const struct column columns[] = {
		{ "CGROUP", "{cgroup}" },
		{ "RULES", "{rules}" },
		{ "STATE", "{state}", .flags = COLUMN_RIGID },
		{ "PROCS", "{processes}", .flags = COLUMN_RIGID },
		{ "CPU STALL", "{pressure.cpu.some_total_us}", .flags = COLUMN_RIGID },
		{ "MEM STALL", "{pressure.memory.some_total_us}", .flags = COLUMN_RIGID },
		{ "IO STALL", "{pressure.io.some_total_us}", .flags = COLUMN_RIGID },
		{ "SESSIONS", "{sessions}", .flags = COLUMN_RIGID | COLUMN_SPARE },
		{ "AGE", "{age_ms}", .flags = COLUMN_RIGID | COLUMN_SPARE },
		{ "SCOPE", "{scope}", .flags = COLUMN_SPARE },
		{ "SLOT", "{slot}", .flags = COLUMN_SPARE },
	};

	return show_table(watches, columns, ARRAY_SIZE(columns),
			  "no watches: no process matches a rule", 0, out);
}

int show_sessions(const struct json_node *sessions, FILE *out)
{
	static const struct column columns[] = {
		{ "SESSION", "{session}", .flags = COLUMN_RIGID }, /* a user copies it */
		{ "CGROUP", "{cgroup}" },
		{ "RULE", "{rule}" },
		{ "STATE", "{state}" },
		{ "AGE", "{age_ms}" },
		{ "REASON", "{reason}" },
		{ "SAMPLES", "{samples}", .flags = COLUMN_SPARE },
	};

	return show_table(sessions, columns, ARRAY_SIZE(columns), "no sessions", 0, out);
}

int show_matches(const struct json_node *matches, FILE *out)
{
	static const struct column columns[] = {
		{ "RULE", "{rule}" },
		{ "PID", "{pid}" },
		{ "COMM", "{comm}" },
		{ "CGROUP", "{cgroup}" },
	};

	return show_table(matches, columns, ARRAY_SIZE(columns), "no running process would match",
			  0, out);
}

int show_faults(const struct json_node *faults, const char *file, const char *kind, FILE *out)
{
	for (const struct json_node *fault = json_node_first(faults); fault;
	     fault = json_node_next(fault)) {
		_cleanup_free_ char *pointer =
			member_text_value("", member_text_find(fault, "pointer"));
		_cleanup_free_ char *message =
			member_text_value("", member_text_find(fault, "message"));
		uint64_t line = member_text_number(fault, "line"),
			 column = member_text_number(fault, "column");

		fputs(file, out);
		if (line)
			fprintf(out, ":%llu", (unsigned long long)line);
		if (line && column)
			fprintf(out, ":%llu", (unsigned long long)column);
		fprintf(out, ": %s%s%s%s\n", kind, pointer ? pointer : "",
			pointer && *pointer ? ": " : "", message ? message : "-");
	}
	return 0;
}

/* Prints a line for each member; a line longer than the terminal's continues below the value. */
static int show_object(const struct json_node *object, FILE *out)
{
	int width = 0;

	for (const struct json_node *m = json_node_first(object); m; m = json_node_next(m)) {
		_cleanup_free_ char *label = member_text_label(m->key);

		width = MAX(width, label ? (int)text_width(label) : 0);
	}
	for (const struct json_node *m = json_node_first(object); m; m = json_node_next(m)) {
		_cleanup_free_ char *label = member_text_label(m->key),
				    *value = member_text_value(m->key, m);

		if (!label)
			return -ENOMEM;
		fprintf(out, "  %s%*s%s\n", label, width - (int)text_width(label) + 2, "",
			value ? value : "-");
	}
	return 0;
}

/* Returns whether an array of strings has `key`. */
static bool has_name(const struct json_node *names, const char *key)
{
	for (const struct json_node *m = json_node_first(names); m; m = json_node_next(m))
		if (json_node_equals(m, key))
			return true;
	return false;
}

/* Prints the holdings of each owner; '!' follows a value of the owner's whole share or more. */
static int show_owners(const struct json_node *owners, FILE *out)
{
	static const char *const heads[] = { "WATCHES", "TABLES", "ROWS", "CAPTURED", "OWNER" };
	static const char *const keys[] = { "watches", "tables", "rows_bytes", "captured_ms" };
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, ARRAY_SIZE(heads));
	text_table_words(&table, heads, ARRAY_SIZE(heads));
	for (const struct json_node *owner = json_node_first(owners); owner;
	     owner = json_node_next(owner)) {
		for (size_t c = 0; c < ARRAY_SIZE(keys); c++) {
			_cleanup_free_ char *value =
				member_text_value(keys[c], json_node_get(owner, keys[c]));

			text_table_printf(&table, "%s%s", value ? value : "-",
					  has_name(json_node_get(owner, "at_share"), keys[c]) ? "!"
											      : "");
		}
		text_table_add(&table, member_text_value("", json_node_get(owner, "owner")));
	}
	return text_table_print(&table, 2, out);
}

/* Prints an array of the status, each in its own table. */
static int show_list(const struct json_node *value, FILE *out)
{
	static const struct column rings[] = {
		{ "NAME", "{name}" },
		{ "SIZE", "{size_bytes}" },
		{ "USED", "{used_bytes}" },
	};

	if (!json_node_has_key(value, "owners") || !json_node_elements(value))
		return show_table(value, rings, ARRAY_SIZE(rings), "none", 2, out);
	return show_owners(value, out);
}

int show_all(const struct json_node *status, FILE *out)
{
	for (const struct json_node *m = json_node_first(status); m; m = json_node_next(m)) {
		_cleanup_free_ char *name = member_text_label(m->key);
		bool list = json_node_is(m, JSON_ARRAY) &&
			    (json_node_has_key(m, "rings") || json_node_has_key(m, "owners"));
		int r;

		if (!list && !json_node_is(m, JSON_OBJECT))
			continue;
		fprintf(out, "\n%s%s%s\n", terminal_on(STYLE_HEAD), name ? name : "-",
			terminal_off());
		r = list ? show_list(m, out) : show_object(m, out);
		if (r < 0)
			return r;
	}
	return 0;
}
