/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/cli/text_width.h"
#include "ctl/client/paths.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

struct column {
	const char *head;
	const char *path; /* keys, with dots between */
};

static const char *find_last_key(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot + 1 : path;
}

/* A table of the items of an array. */
struct shown {
	const struct column *columns;
	unsigned int n;
	unsigned int spare; /* columns from this one on may be omitted if lines are short */
	uint32_t rigid;	    /* bits of columns with cells that are never cut */
	const char *none;   /* printed if there are no items */
};

static int show_table(const struct json_node *items, const struct shown *shown, unsigned int indent,
		      FILE *out)
{
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, shown->n);
	table.spare = shown->spare < shown->n ? ~0u << shown->spare : 0;
	table.rigid = shown->rigid;
	if (!json_node_elements(items)) {
		fprintf(out, "%*s%s\n", (int)indent, "", shown->none);
		return 0;
	}
	for (unsigned int c = 0; c < shown->n; c++)
		text_table_add(&table, strdup(shown->columns[c].head));
	for (const struct json_node *m = json_node_first(items); m; m = json_node_next(m)) {
		for (unsigned int c = 0; c < shown->n; c++) {
			const char *path = shown->columns[c].path;

			text_table_add(&table,
				       member_text_value(find_last_key(path), paths_get(m, path)));
		}
	}
	return text_table_print(&table, indent, out);
}

int show_watches(const struct json_node *watches, FILE *out)
{
	static const struct column columns[] = {
		{ "CGROUP", "cgroup" },
		{ "RULES", "rules" },
		{ "STATE", "state" },
		{ "PROCS", "processes" },
		{ "CPU STALL", "pressure.cpu.some_total_us" },
		{ "MEM STALL", "pressure.memory.some_total_us" },
		{ "IO STALL", "pressure.io.some_total_us" },
		{ "SESSIONS", "sessions" },
		{ "AGE", "age_ms" },
		{ "SCOPE", "scope" },
		{ "SLOT", "slot" },
	};
	static const struct shown shown = {
		.columns = columns,
		.n = ARRAY_SIZE(columns),
		.spare = 7,
		.rigid = 0x1fc, /* all except CGROUP and RULES */
		.none = "no watches: no process matches a rule",
	};

	return show_table(watches, &shown, 0, out);
}

int show_sessions(const struct json_node *sessions, FILE *out)
{
	static const struct column columns[] = {
		{ "SESSION", "session" }, { "CGROUP", "cgroup" }, { "RULE", "rule" },
		{ "STATE", "state" },	  { "AGE", "age_ms" },	  { "REASON", "reason" },
		{ "SAMPLES", "samples" },
	};
	static const struct shown shown = {
		.columns = columns,
		.n = ARRAY_SIZE(columns),
		.spare = 6,
		.rigid = 1, /* a user copies the id */
		.none = "no sessions",
	};

	return show_table(sessions, &shown, 0, out);
}

int show_matches(const struct json_node *matches, FILE *out)
{
	static const struct column columns[] = {
		{ "RULE", "rule" },
		{ "PID", "pid" },
		{ "COMM", "comm" },
		{ "CGROUP", "cgroup" },
	};
	static const struct shown shown = {
		.columns = columns,
		.n = ARRAY_SIZE(columns),
		.spare = UINT32_MAX,
		.none = "no running process would match",
	};

	return show_table(matches, &shown, 0, out);
}

int show_faults(const struct json_node *faults, const char *file, const char *kind, FILE *out)
{
	for (const struct json_node *fault = json_node_first(faults); fault;
	     fault = json_node_next(fault)) {
		_cleanup_free_ char *pointer = member_text_value("", paths_get(fault, "pointer"));
		_cleanup_free_ char *message = member_text_value("", paths_get(fault, "message"));
		uint64_t line = paths_number(fault, "line"), column = paths_number(fault, "column");

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
	static const struct column columns[] = {
		{ "WATCHES", "watches" },
		{ "TABLES", "tables" },
		{ "ROWS", "rows_bytes" },
		{ "CAPTURED", "captured_ms" },
	};
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, ARRAY_SIZE(columns) + 1);
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
		text_table_add(&table, strdup(columns[c].head));
	text_table_add(&table, strdup("OWNER"));
	for (const struct json_node *owner = json_node_first(owners); owner;
	     owner = json_node_next(owner)) {
		for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
			const char *key = columns[c].path;
			_cleanup_free_ char *value = member_text_value(key, paths_get(owner, key));
			char *cell = NULL;

			if (asprintf(&cell, "%s%s", value ? value : "-",
				     has_name(paths_get(owner, "at_share"), key) ? "!" : "") < 0)
				return -ENOMEM;
			text_table_add(&table, cell);
		}
		text_table_add(&table, member_text_value("", paths_get(owner, "owner")));
	}
	return text_table_print(&table, 2, out);
}

/* Prints an array of the status, each in its own table. */
static int show_list(const struct json_node *value, FILE *out)
{
	static const struct column rings[] = {
		{ "NAME", "name" },
		{ "SIZE", "size_bytes" },
		{ "USED", "used_bytes" },
	};
	static const struct shown shown = {
		.columns = rings, .n = ARRAY_SIZE(rings), .spare = UINT32_MAX, .none = "none"
	};

	if (!json_node_has_key(value, "owners"))
		return show_table(value, &shown, 2, out);
	return json_node_elements(value)      ? show_owners(value, out)
	       : fprintf(out, "  none\n") < 0 ? -EIO
					      : 0;
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
