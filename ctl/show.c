/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/text.h"
#include "shared/cleanup.h"
#include "shared/macro.h"

#define PATH_MAX_KEYS 4 /* "pressure.cpu.some_total_us" */

struct column {
	const char *head;
	const char *path; /* keys, with dots between */
};

static json_object *get(json_object *object, const char *path)
{
	char key[64];

	for (int i = 0; i < PATH_MAX_KEYS && object; i++) {
		size_t bytes = strcspn(path, ".");
		json_object *value = NULL;

		snprintf(key, sizeof(key), "%.*s", (int)bytes, path);
		if (!json_object_is_type(object, json_type_object) ||
		    !json_object_object_get_ex(object, key, &value))
			return NULL;
		if (!path[bytes])
			return value;
		object = value;
		path += bytes + 1;
	}
	return NULL;
}

static uint64_t get_number(json_object *object, const char *path)
{
	json_object *value = get(object, path);

	return json_object_is_type(value, json_type_int) ? json_object_get_uint64(value) : 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t bytes = strlen(text), end_bytes = strlen(end);

	return bytes >= end_bytes && !strcmp(text + bytes - end_bytes, end);
}

/* A number in the unit of its key. */
static char *number_text(const char *key, json_object *value)
{
	char text[TEXT_UNIT_BYTES];
	uint64_t n = json_object_get_uint64(value);

	if (json_object_get_int64(value) < 0)
		return strdup(json_object_get_string(value));
	if (ends_with(key, "bytes"))
		return strdup(text_bytes(n, text));
	if (ends_with(key, "_us"))
		return strdup(text_duration_us(n, text));
	if (ends_with(key, "_ms"))
		return strdup(
			text_duration_us(n < UINT64_MAX / 1000 ? n * 1000 : UINT64_MAX, text));
	return strdup(json_object_get_string(value));
}

/* The key for people: without the unit that the value now shows, words apart. */
static char *label(const char *key)
{
	char *text = text_tame(key, strlen(key)), *unit = text ? strrchr(text, '_') : NULL;

	if (unit && (!strcmp(unit, "_bytes") || !strcmp(unit, "_ms") || !strcmp(unit, "_us")))
		*unit = 0;
	for (char *c = text; c && *c; c++)
		if (*c == '_')
			*c = ' ';
	return text;
}

static char *string_text(json_object *value)
{
	return text_tame(json_object_get_string(value), (size_t)json_object_get_string_len(value));
}

static void put_words(FILE *out, const char *key, json_object *value)
{
	_cleanup_free_ char *text = show_value(key, value), *name = label(key);

	/* Words speak for themselves; what is a number or an object needs its name. */
	if (json_object_is_type(value, json_type_string))
		fputs(text ? text : "-", out);
	else
		fprintf(out, "%s %s", name ? name : "", text ? text : "-");
}

/* {"pressure":{"resource":"cpu","kind":"some","stall_ms":120}}: "pressure cpu some stall 120 ms".
 */
static char *compound_text(const char *key, json_object *value)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes, n = 0;
	_cleanup_fclose_ FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, k, v)
		{
			fputs(n++ ? " " : "", out);
			put_words(out, k, v);
		}
	} else {
		for (; n < json_object_array_length(value); n++) {
			_cleanup_free_ char *one =
				show_value(key, json_object_array_get_idx(value, n));

			fprintf(out, "%s%s", n ? ", " : "", one ? one : "-");
		}
	}
	if (!n)
		fputc('-', out);
	fclose(out);
	out = NULL;
	return TAKE_PTR(text);
}

char *show_value(const char *key, json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_boolean:
		return strdup(json_object_get_boolean(value) ? "yes" : "no");
	case json_type_int:
		return number_text(key, value);
	case json_type_string:
		return string_text(value);
	case json_type_double:
		return strdup(json_object_get_string(value));
	case json_type_array:
	case json_type_object:
		return compound_text(key, value);
	default:
		return NULL;
	}
}

static const char *last_key(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot + 1 : path;
}

/* The items of an array as a table; `none` when there are none. */
static int show_table(json_object *items, const struct column *columns, unsigned int n,
		      unsigned int indent, const char *none, FILE *out)
{
	_cleanup_(text_table_done) struct text_table table;
	size_t count = 0;

	text_table_init(&table, n);
	if (json_object_is_type(items, json_type_array))
		count = json_object_array_length(items);
	if (!count) {
		fprintf(out, "%*s%s\n", (int)indent, "", none);
		return 0;
	}
	for (unsigned int c = 0; c < n; c++)
		text_table_add(&table, strdup(columns[c].head));
	for (size_t i = 0; i < count; i++) {
		json_object *item = json_object_array_get_idx(items, i);

		for (unsigned int c = 0; c < n; c++)
			text_table_add(&table, show_value(last_key(columns[c].path),
							  get(item, columns[c].path)));
	}
	return text_table_print(&table, indent, out);
}

int show_watches(json_object *watches, FILE *out)
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

int show_sessions(json_object *sessions, FILE *out)
{
	static const struct column columns[] = {
		{ "SESSION", "session" }, { "STATE", "state" },	    { "AGE", "age_ms" },
		{ "RULE", "rule" },	  { "SAMPLES", "samples" }, { "CGROUP", "cgroup" },
		{ "REASON", "reason" },
	};

	return show_table(sessions, columns, ARRAY_SIZE(columns), 0, "no sessions", out);
}

int show_matches(json_object *matches, FILE *out)
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

int show_faults(json_object *faults, const char *file, FILE *out)
{
	size_t n =
		json_object_is_type(faults, json_type_array) ? json_object_array_length(faults) : 0;

	for (size_t i = 0; i < n; i++) {
		json_object *fault = json_object_array_get_idx(faults, i);
		_cleanup_free_ char *pointer = show_value("", get(fault, "pointer"));
		_cleanup_free_ char *message = show_value("", get(fault, "message"));
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
static void show_unseen(json_object *status, FILE *out)
{
	_cleanup_free_ char *error = NULL, *example = NULL, *whole = NULL;
	uint64_t unreadable = get_number(status, "cgroups.unreadable.count");

	if (unreadable) {
		error = show_value("", get(status, "cgroups.unreadable.error"));
		example = show_value("", get(status, "cgroups.unreadable.example"));
		fprintf(out, "! %llu cgroups cannot be looked into: error %s, for example %s\n",
			(unsigned long long)unreadable, error ? error : "-",
			example ? example : "-");
	}
	if (json_object_get_boolean(get(status, "cgroups.cut")))
		fprintf(out, "! the cgroup hierarchy is larger than the agent lists\n");
	if (get(status, "cgroups.error")) {
		whole = show_value("", get(status, "cgroups.error"));
		fprintf(out, "! the cgroup hierarchy cannot be read: error %s\n",
			whole ? whole : "-");
	}
}

/* Cgroups that a rule matches and the loader does not allow. */
static void show_scope(json_object *status, FILE *out)
{
	uint64_t refused = get_number(status, "scope.refused");

	if (refused)
		fprintf(out,
			"! %llu times a cgroup outside of the loader's --scope was not watched\n",
			(unsigned long long)refused);
}

/* What somebody at 3 a.m. must not overlook. */
static void show_attention(json_object *status, FILE *out)
{
	_cleanup_free_ char *error = NULL;
	uint64_t dropped = get_number(status, "output.dropped_lines");
	json_object *last = get(status, "output.last_error");

	if (dropped)
		fprintf(out, "! %llu lines dropped: the reader of the output is too slow\n",
			(unsigned long long)dropped);
	if (last && (!json_object_is_type(last, json_type_int) || json_object_get_int64(last))) {
		error = show_value("", last);
		fprintf(out, "! the output cannot be written: error %s\n", error ? error : "-");
	}
	if (get_number(status, "sampling.missing")) {
		_cleanup_free_ char *reason = show_value("", get(status, "sampling.reason"));

		fprintf(out, "! %llu CPUs are not sampled: %s\n",
			(unsigned long long)get_number(status, "sampling.missing"),
			reason ? reason : "-");
	}
	show_unseen(status, out);
	show_scope(status, out);
	if (get(status, "rules") && !get_number(status, "rules"))
		fprintf(out, "! no rules in force: nothing is watched\n");
}

static void show_head(json_object *status, FILE *out)
{
	_cleanup_free_ char *version = show_value("", get(status, "version"));
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

static int show_object(json_object *object, FILE *out)
{
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, 2);
	json_object_object_foreach(object, key, value)
	{
		text_table_add(&table, label(key));
		text_table_add(&table, show_value(key, value));
	}
	return text_table_print(&table, 2, out);
}

/* Whether `key` is among the names of an array of strings. */
static bool has_name(json_object *names, const char *key)
{
	for (size_t i = 0;
	     json_object_is_type(names, json_type_array) && i < json_object_array_length(names);
	     i++) {
		json_object *name = json_object_array_get_idx(names, i);

		if (json_object_is_type(name, json_type_string) &&
		    !strcmp(json_object_get_string(name), key))
			return true;
	}
	return false;
}

/* Who holds how much; '!' behind what is the owner's whole share or more. */
static int show_owners(json_object *owners, FILE *out)
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
	for (size_t i = 0; i < json_object_array_length(owners); i++) {
		json_object *owner = json_object_array_get_idx(owners, i);

		for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
			const char *key = columns[c].path;
			_cleanup_free_ char *value = show_value(key, get(owner, key));
			char *cell = NULL;

			if (asprintf(&cell, "%s%s", value ? value : "-",
				     has_name(get(owner, "at_share"), key) ? "!" : "") < 0)
				return -ENOMEM;
			text_table_add(&table, cell);
		}
		text_table_add(&table, show_value("", get(owner, "owner")));
	}
	return text_table_print(&table, 2, out);
}

/* What of the status is an array, each with a table of its own. */
static int show_list(const char *key, json_object *value, FILE *out)
{
	static const struct column rings[] = {
		{ "NAME", "name" },
		{ "SIZE", "size_bytes" },
		{ "USED", "used_bytes" },
	};

	if (strcmp(key, "owners") != 0)
		return show_table(value, rings, ARRAY_SIZE(rings), 2, "none", out);
	return json_object_array_length(value) ? show_owners(value, out)
	       : fprintf(out, "  none\n") < 0  ? -EIO
					       : 0;
}

int show_status(json_object *status, FILE *out)
{
	int r;

	show_head(status, out);
	show_attention(status, out);
	if (!json_object_is_type(status, json_type_object))
		return 0;
	json_object_object_foreach(status, key, value)
	{
		_cleanup_free_ char *name = label(key);
		bool list = json_object_is_type(value, json_type_array) &&
			    (!strcmp(key, "rings") || !strcmp(key, "owners"));

		if (!list && !json_object_is_type(value, json_type_object))
			continue;
		fprintf(out, "\n%s\n", name ? name : "-");
		r = list ? show_list(key, value, out) : show_object(value, out);
		if (r < 0)
			return r;
	}
	return 0;
}
