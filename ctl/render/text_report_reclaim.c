/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_reclaim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/line_table.h"
#include "ctl/render/neighbour_text.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/*
 * Adds a bound of a histogram. The last element has no bound, nor have the rest and a line without
 * events.
 */
static void add_bound(struct text_table *table, const struct json_node *line, const char *key)
{
	uint64_t ns = line_table_read(line, key);

	if (ns)
		line_table_time(table, ns);
	else
		text_table_add(table, strdup(line_table_read(line, "count") &&
							     !json_node_get(line, "others")
						     ? "longer"
						     : ""));
}

/* "throttle on vda" */
static char *name_kind(const struct json_node *line)
{
	_cleanup_free_ char *kind = member_text_value("kind", json_node_get(line, "kind"));
	_cleanup_free_ char *device = member_text_value("device", json_node_get(line, "device"));
	bool on = json_node_get(line, "device");
	char *text = NULL;
	int n;

	if (json_node_get(line, "others"))
		n = asprintf(&text, "%" PRIu64 " more", line_table_read(line, "others"));
	else
		n = asprintf(&text, "%s%s%s", kind ? kind : "-", on ? " on " : "",
			     on && device ? device : "");
	return n < 0 ? NULL : text;
}

static void add_kind(struct text_table *table, const struct json_node *line)
{
	char bytes[TEXT_UNIT_BYTES];

	text_table_add(table, name_kind(line));
	line_table_number(table, line_table_read(line, "count"));
	line_table_time(table, line_table_read(line, "time_ns"));
	add_bound(table, line, "p50");
	add_bound(table, line, "p99");
	line_table_time(table, line_table_read(line, "longest_ns"));
	line_table_number(table, line_table_read(line, "open"));
	text_table_add(table, strdup(text_bytes(line_table_read(line, "reclaimed_bytes"), bytes)));
}

static int add_kinds(const struct store *store, const struct store_session *session,
		     struct text_table *table)
{
	for (uint32_t i = 0; i < session->reclaim.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->reclaim.items[i], &tree);

		if (!line)
			return -ENOMEM;
		add_kind(table, line);
	}
	return 0;
}

/* "  other cgroups: /batch.slice, 812 ms in 90 events, 3.0 GiB reclaimed" */
static void print_neighbour(const struct json_node *line, FILE *out)
{
	_cleanup_free_ char *name = neighbour_text(line);
	uint64_t ms = line_table_read(line, "direct_ms") + line_table_read(line, "limit_ms") +
		      line_table_read(line, "compaction_ms") + line_table_read(line, "throttle_ms");
	char bytes[TEXT_UNIT_BYTES];

	if (json_node_get(line, "others"))
		fprintf(out, "  and %" PRIu64 " more cgroup%s: ", line_table_read(line, "others"),
			text_s(line_table_read(line, "others")));
	else
		fprintf(out, "  other cgroups: %s, ", name ? name : "-");
	fprintf(out, "%" PRIu64 " ms in %" PRIu64 " event%s, %s reclaimed\n", ms,
		line_table_read(line, "stretches"), text_s(line_table_read(line, "stretches")),
		text_bytes(line_table_read(line, "reclaimed_bytes"), bytes));
}

static int print_neighbours(const struct store *store, const struct store_session *session,
			    FILE *out)
{
	for (uint32_t i = 0; i < session->neighbours.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->neighbours.items[i], &tree);

		if (!line)
			return -ENOMEM;
		if (json_node_get(line, "stretches"))
			print_neighbour(line, out);
	}
	return 0;
}

int text_report_reclaim(const struct store *store, const struct store_session *session, FILE *out)
{
	static const char *const heads[] = { "KIND", "TIMES",	"TIME", "P50",
					     "P99",  "LONGEST", "OPEN", "RECLAIMED" };
	_cleanup_(text_table_done) struct text_table table;
	int r;

	text_table_init(&table, ARRAY_SIZE(heads));
	if (!session->reclaim.count)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		text_table_add(&table, strdup(heads[i]));
	r = add_kinds(store, session, &table);
	if (r < 0)
		return r;
	fputs("\ndirect reclaim and dirty throttling\n", out);
	r = text_table_print(&table, 2, out);
	return r < 0 ? r : print_neighbours(store, session, out);
}
