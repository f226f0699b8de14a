/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define PATH_MAX_KEYS 4 /* "pressure.cpu.some_total_us" */

struct column {
	const char *head;
	const char *path; /* keys, with dots between */
};

/* What stands at the end of a path; NULL where it leads nowhere, or to null. */
static const struct json_node *get_path(const struct json_node *object, const char *path)
{
	char key[64];

	for (int i = 0; i < PATH_MAX_KEYS && object; i++) {
		size_t bytes = strcspn(path, ".");

		snprintf(key, sizeof(key), "%.*s", (int)bytes, path);
		object = json_node_get(object, key);
		if (!path[bytes])
			return object;
		path += bytes + 1;
	}
	return NULL;
}

static uint64_t get_number(const struct json_node *object, const char *path)
{
	const struct json_node *value = get_path(object, path);

	return json_node_is(value, JSON_INTEGER) ? json_node_u64(value) : 0;
}

static const char *find_last_key(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot + 1 : path;
}

/* The items of an array as a table; `none` when there are none. */
static int show_table(const struct json_node *items, const struct column *columns, unsigned int n,
		      unsigned int indent, const char *none, FILE *out)
{
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, n);
	if (!json_node_elements(items)) {
		fprintf(out, "%*s%s\n", (int)indent, "", none);
		return 0;
	}
	for (unsigned int c = 0; c < n; c++)
		text_table_add(&table, strdup(columns[c].head));
	for (const struct json_node *m = json_node_first(items); m; m = json_node_next(m))
		for (unsigned int c = 0; c < n; c++)
			text_table_add(&table, member_text_value(find_last_key(columns[c].path),
								 get_path(m, columns[c].path)));
	return text_table_print(&table, indent, out);
}

int show_watches(const struct json_node *watches, FILE *out)
{
	static const struct column columns[] = {
		{ "SLOT", "slot" },
		{ "STATE", "state" },
		{ "SCOPE", "scope" },
		{ "PROCS", "processes" },
		{ "AGE", "age_ms" },
		{ "SESSIONS", "sessions" },
		{ "CPU STALL", "pressure.cpu.some_total_us" },
		{ "MEM STALL", "pressure.memory.some_total_us" },
		{ "IO STALL", "pressure.io.some_total_us" },
		{ "RULES", "rules" },
		{ "CGROUP", "cgroup" },
	};

	return show_table(watches, columns, ARRAY_SIZE(columns), 0,
			  "no watches: no process matches a rule", out);
}

int show_sessions(const struct json_node *sessions, FILE *out)
{
	static const struct column columns[] = {
		{ "SESSION", "session" }, { "STATE", "state" },	    { "AGE", "age_ms" },
		{ "RULE", "rule" },	  { "SAMPLES", "samples" }, { "CGROUP", "cgroup" },
		{ "REASON", "reason" },
	};

	return show_table(sessions, columns, ARRAY_SIZE(columns), 0, "no sessions", out);
}

int show_matches(const struct json_node *matches, FILE *out)
{
	static const struct column columns[] = {
		{ "RULE", "rule" },
		{ "PID", "pid" },
		{ "COMM", "comm" },
		{ "CGROUP", "cgroup" },
	};

	return show_table(matches, columns, ARRAY_SIZE(columns), 0,
			  "no running process would match", out);
}

int show_faults(const struct json_node *faults, const char *file, FILE *out)
{
	for (const struct json_node *fault = json_node_first(faults); fault;
	     fault = json_node_next(fault)) {
		_cleanup_free_ char *pointer = member_text_value("", get_path(fault, "pointer"));
		_cleanup_free_ char *message = member_text_value("", get_path(fault, "message"));
		uint64_t line = get_number(fault, "line");

		fputs(file, out);
		if (line)
			fprintf(out, ":%llu", (unsigned long long)line);
		fprintf(out, ": %s%s%s\n", pointer ? pointer : "", pointer && *pointer ? ": " : "",
			message ? message : "-");
	}
	return 0;
}

/* Cgroups that the agent cannot see: rules by cgroup may be blind there. */
static void show_unseen(const struct json_node *status, FILE *out)
{
	_cleanup_free_ char *error = NULL, *example = NULL, *whole = NULL;
	uint64_t unreadable = get_number(status, "cgroups.unreadable.count");

	if (unreadable) {
		error = member_text_value("", get_path(status, "cgroups.unreadable.error"));
		example = member_text_value("", get_path(status, "cgroups.unreadable.example"));
		fprintf(out, "! %llu cgroups cannot be looked into: error %s, for example %s\n",
			(unsigned long long)unreadable, error ? error : "-",
			example ? example : "-");
	}
	if (json_node_is_true(get_path(status, "cgroups.cut")))
		fprintf(out, "! the cgroup hierarchy is larger than the agent lists\n");
	if (get_path(status, "cgroups.error")) {
		whole = member_text_value("", get_path(status, "cgroups.error"));
		fprintf(out, "! the cgroup hierarchy cannot be read: error %s\n",
			whole ? whole : "-");
	}
}

/* Cgroups that a rule matches and the loader does not allow. */
static void show_scope(const struct json_node *status, FILE *out)
{
	uint64_t refused = get_number(status, "scope.refused");

	if (refused)
		fprintf(out,
			"! %llu times a cgroup outside of the loader's --scope was not watched\n",
			(unsigned long long)refused);
}

/* What somebody at 3 a.m. must not overlook. */
static void show_attention(const struct json_node *status, FILE *out)
{
	_cleanup_free_ char *error = NULL;
	uint64_t dropped = get_number(status, "output.dropped_lines");
	const struct json_node *last = get_path(status, "output.last_error");

	if (dropped)
		fprintf(out, "! %llu lines dropped: the reader of the output is too slow\n",
			(unsigned long long)dropped);
	if (last && (!json_node_is(last, JSON_INTEGER) || json_node_i64(last))) {
		error = member_text_value("", last);
		fprintf(out, "! the output cannot be written: error %s\n", error ? error : "-");
	}
	if (get_number(status, "sampling.missing")) {
		_cleanup_free_ char *reason =
			member_text_value("", get_path(status, "sampling.reason"));

		fprintf(out, "! %llu CPUs are not sampled: %s\n",
			(unsigned long long)get_number(status, "sampling.missing"),
			reason ? reason : "-");
	}
	show_unseen(status, out);
	show_scope(status, out);
	if (get_path(status, "rules") && !get_number(status, "rules"))
		fprintf(out, "! no rules in force: nothing is watched\n");
}

static void show_head(const struct json_node *status, FILE *out)
{
	_cleanup_free_ char *version = member_text_value("", get_path(status, "version"));
	char up[TEXT_UNIT_BYTES];

	fprintf(out, "trocar %s is running: pid %llu, up %s\n", version ? version : "-",
		(unsigned long long)get_number(status, "pid"),
		text_duration_us(get_number(status, "uptime_ms") * 1000, up));
	fprintf(out,
		"generation %llu: %llu rules, %llu watches, %llu processes, %llu sessions "
		"running, %llu in all\n",
		(unsigned long long)get_number(status, "generation"),
		(unsigned long long)get_number(status, "rules"),
		(unsigned long long)get_number(status, "watches"),
		(unsigned long long)get_number(status, "processes"),
		(unsigned long long)get_number(status, "sessions_running"),
		(unsigned long long)get_number(status, "sessions_total"));
}

static int show_object(const struct json_node *object, FILE *out)
{
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, 2);
	for (const struct json_node *m = json_node_first(object); m; m = json_node_next(m)) {
		text_table_add(&table, member_text_label(m->key));
		text_table_add(&table, member_text_value(m->key, m));
	}
	return text_table_print(&table, 2, out);
}

/* Whether `key` is among the names of an array of strings. */
static bool has_name(const struct json_node *names, const char *key)
{
	for (const struct json_node *m = json_node_first(names); m; m = json_node_next(m))
		if (json_node_equals(m, key))
			return true;
	return false;
}

/* Who holds how much; '!' behind what is the owner's whole share or more. */
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
			_cleanup_free_ char *value = member_text_value(key, get_path(owner, key));
			char *cell = NULL;

			if (asprintf(&cell, "%s%s", value ? value : "-",
				     has_name(get_path(owner, "at_share"), key) ? "!" : "") < 0)
				return -ENOMEM;
			text_table_add(&table, cell);
		}
		text_table_add(&table, member_text_value("", get_path(owner, "owner")));
	}
	return text_table_print(&table, 2, out);
}

/* What of the status is an array, each with a table of its own. */
static int show_list(const struct json_node *value, FILE *out)
{
	static const struct column rings[] = {
		{ "NAME", "name" },
		{ "SIZE", "size_bytes" },
		{ "USED", "used_bytes" },
	};

	if (!json_node_has_key(value, "owners"))
		return show_table(value, rings, ARRAY_SIZE(rings), 2, "none", out);
	return json_node_elements(value)      ? show_owners(value, out)
	       : fprintf(out, "  none\n") < 0 ? -EIO
					      : 0;
}

int show_status(const struct json_node *status, FILE *out)
{
	int r;

	show_head(status, out);
	show_attention(status, out);
	if (!json_node_is(status, JSON_OBJECT))
		return 0;
	for (const struct json_node *m = json_node_first(status); m; m = json_node_next(m)) {
		_cleanup_free_ char *name = member_text_label(m->key);
		bool list = json_node_is(m, JSON_ARRAY) &&
			    (json_node_has_key(m, "rings") || json_node_has_key(m, "owners"));

		if (!list && !json_node_is(m, JSON_OBJECT))
			continue;
		fprintf(out, "\n%s\n", name ? name : "-");
		r = list ? show_list(m, out) : show_object(m, out);
		if (r < 0)
			return r;
	}
	return 0;
}
