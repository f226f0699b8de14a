/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_waits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/text_report_lines.h"
#include "shared/tools/cleanup.h"

#define COLUMNS 4

static void add_value(struct text_table *table, const struct json_node *wait, const char *key)
{
	text_table_add(table, member_text_value(key, json_node_get(wait, key)));
}

/* "ProcSleep < LockAcquireExtended < heap_update": the function and who called it. */
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

/* "2 threads, on the file journal": how many, whether they are idle, what they wait on. */
static char *make_who(const struct json_node *wait)
{
	uint64_t threads = json_node_u64(json_node_get(wait, "threads"));
	const struct json_node *on = json_node_get(wait, "on"), *peer = json_node_get(on, "peer"),
			       *file = json_node_get(on, "name");
	const char *idle = json_node_is_true(json_node_get(wait, "idle")) ? ", idle" : "";
	const char *what = "";
	_cleanup_free_ char *name = NULL;
	char *who = NULL;

	if (peer && !json_node_equals(json_node_get(on, "what"), "socket"))
		what = ", for answers of ";
	else if (peer)
		what = ", on the socket to ";
	else if (json_node_equals(json_node_get(on, "what"), "file"))
		what = ", on the file ";
	if (*what)
		name = member_text_value("name", peer ? peer : file);
	if (*what && !name)
		return NULL;
	return asprintf(&who, "%" PRIu64 " thread%s%s%s%s", threads, threads == 1 ? "" : "s", idle,
			what, name ? name : "") < 0
		       ? NULL
		       : who;
}

/* Adds the cells of one row. */
static void add_wait(struct text_table *table, const struct json_node *wait)
{
	add_value(table, wait, "weight_ms");
	if (json_node_is_true(json_node_get(wait, "condition")))
		text_table_add(table, strdup("condition"));
	else if (json_node_get(wait, "wait"))
		add_value(table, wait, "wait");
	else
		text_table_add(table, strdup("for a CPU"));
	text_table_add(table, make_place(wait));
	text_table_add(table, make_who(wait));
}

int text_report_waits(const struct store *store, const struct store_session *session, FILE *out)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	_cleanup_(text_table_done) struct text_table table;
	const struct json_node *end = text_report_lines_read(store, session->end, &tree);
	const struct json_node *wait = json_node_first(json_node_get(end, "waits"));

	text_table_init(&table, COLUMNS);
	if (!end && session->end != STORE_NONE)
		return -ENOMEM;
	if (!wait)
		return 0;
	for (; wait; wait = json_node_next(wait))
		add_wait(&table, wait);
	fprintf(out, "threads waited, by %" PRIu64 " looks:\n",
		json_node_u64(json_node_get(json_node_get(end, "looks"), "passes")));
	return text_table_print(&table, 2, out);
}
