/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_waits.h"

#include <errno.h>
#include <inttypes.h>
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

/* Adds the cells of one row. */
static void add_wait(struct text_table *table, const struct json_node *wait)
{
	uint64_t threads = json_node_u64(json_node_get(wait, "threads"));
	bool idle = json_node_is_true(json_node_get(wait, "idle"));
	char who[64];

	snprintf(who, sizeof(who), "%" PRIu64 " thread%s%s", threads, threads == 1 ? "" : "s",
		 idle ? ", idle" : "");
	add_value(table, wait, "weight_ms");
	if (json_node_get(wait, "wait"))
		add_value(table, wait, "wait");
	else
		text_table_add(table, strdup("for a CPU"));
	add_value(table, wait, "fn");
	text_table_add(table, strdup(who));
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
