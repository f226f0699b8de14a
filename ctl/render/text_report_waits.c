/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_waits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/text_report_lines.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static void add_value(struct text_table *table, const struct json_node *wait, const char *key)
{
	text_table_add(table, member_text_value(key, json_node_get(wait, key)));
}

/* "ProcSleep < LockAcquireExtended < heap_update": the function and its callers. */
static char *make_place(const struct json_node *wait)
{
	char *place = member_text_value("fn", json_node_get(wait, "fn"));
	const struct json_node *caller = json_node_first(json_node_get(wait, "callers"));

	for (; place && caller; caller = json_node_next(caller)) {
		_cleanup_free_ char *name = member_text_value("fn", caller);
		char *longer = NULL;

		if (!name || asprintf(&longer, "%s < %s", place, name) < 0)
			longer = NULL;
		free(place);
		place = longer;
	}
	return place;
}

/*
 * Returns the contents of the set of a poll or select, "2 unix, 1 timerfd"; "" if it is not known.
 */
static char *make_kinds(const struct json_node *on)
{
	static const char *const names[] = {
#define LOOK_MEMBER(id, json, help) json,
#include "shared/abi/look_members.def"
#undef LOOK_MEMBER
	};
	const struct json_node *kinds = json_node_get(on, "kinds");
	char *text = strdup("");

	for (size_t i = 0; text && i < ARRAY_SIZE(names); i++) {
		uint64_t n = json_node_u64(json_node_get(kinds, names[i]));
		char *longer = NULL;

		if (!n)
			continue;
		if (asprintf(&longer, "%s%s%" PRIu64 " %s", text, *text ? ", " : "", n, names[i]) <
		    0)
			longer = NULL;
		free(text);
		text = longer;
	}
	return text;
}

/* Returns `before` followed by the value of the key. */
static char *join_value(const char *before, const struct json_node *on, const char *key)
{
	_cleanup_free_ char *value = member_text_value(key, json_node_get(on, key));
	char *text = NULL;

	return !value || asprintf(&text, "%s%s", before, value) < 0 ? NULL : text;
}

char *text_report_waits_object(const struct json_node *on)
{
	const struct json_node *what = json_node_get(on, "what");
	bool is_socket = json_node_equals(what, "socket"), asked = json_node_get(on, "asked");

	if (json_node_get(on, "peer"))
		return join_value(is_socket ? "socket to " : "answers of ", on, "peer");
	if (json_node_equals(what, "file"))
		return join_value("file ", on, json_node_get(on, "path") ? "path" : "name");
	if (json_node_get(on, "path") && (is_socket || asked))
		return join_value(is_socket ? "unix socket " : "answers of the unix socket ", on,
				  "path");
	if (json_node_equals(what, "poll") || json_node_equals(what, "select"))
		return make_kinds(on);
	return strdup("");
}

static char *count_threads(const struct json_node *wait)
{
	char *text = NULL;

	return asprintf(&text, "%" PRIu64, json_node_u64(json_node_get(wait, "threads"))) < 0
		       ? NULL
		       : text;
}

/* Adds the cells of one row. */
static void add_wait(struct text_table *table, const struct json_node *wait)
{
	add_value(table, wait, "weight_ms");
	text_table_add(table, count_threads(wait));
	if (json_node_is_true(json_node_get(wait, "idle")))
		text_table_add(table, strdup("idle"));
	else if (json_node_is_true(json_node_get(wait, "condition")))
		text_table_add(table, strdup("condition"));
	else if (json_node_get(wait, "wait"))
		add_value(table, wait, "wait");
	else
		text_table_add(table, strdup("for a CPU"));
	text_table_add(table, make_place(wait));
	text_table_add(table, text_report_waits_object(json_node_get(wait, "on")));
}

int text_report_waits(const struct store *store, const struct store_session *session, FILE *out)
{
	static const char *const heads[] = { "WAITED", "THREADS", "FOR", "WHERE", "ON" };
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	_cleanup_(text_table_done) struct text_table table;
	const struct json_node *end = text_report_lines_read(store, session->end, &tree);
	const struct json_node *wait = json_node_first(json_node_get(end, "waits"));
	uint64_t looks;

	text_table_init(&table, ARRAY_SIZE(heads));
	table.rigid = 1u << 2; /* FOR */
	table.ends = 1u << 3;  /* WHERE */
	if (!end && session->end != STORE_NONE)
		return -ENOMEM;
	if (!wait)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		text_table_add(&table, strdup(heads[i]));
	for (; wait; wait = json_node_next(wait))
		add_wait(&table, wait);
	looks = json_node_u64(json_node_get(json_node_get(end, "looks"), "passes"));
	section_head(out, "waits", "of threads, in %" PRIu64 " sampling pass%s", looks,
		     looks == 1 ? "" : "es");
	return text_table_print(&table, 2, out);
}
