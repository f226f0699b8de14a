/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_disks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static uint64_t read_number(const struct json_node *line, const char *key)
{
	return json_node_u64(json_node_get(line, key));
}

static void add_time(struct text_table *table, uint64_t ns)
{
	char text[TEXT_UNIT_BYTES];

	text_table_add(table, strdup(text_duration_us(ns / NSEC_PER_USEC, text)));
}

/* A bound of a histogram; the last element has none. */
static void add_bound(struct text_table *table, const struct json_node *part, const char *key)
{
	uint64_t ns = read_number(part, key);

	if (!part)
		text_table_add(table, strdup(""));
	else if (!ns)
		text_table_add(table, strdup("longer"));
	else
		add_time(table, ns);
}

static void add_number(struct text_table *table, uint64_t number)
{
	char *text = NULL;

	text_table_add(table, asprintf(&text, "%" PRIu64, number) < 0 ? NULL : text);
}

static char *name_others(const struct json_node *line)
{
	char *text = NULL;

	return asprintf(&text, "%" PRIu64 " more", read_number(line, "others")) < 0 ? NULL : text;
}

static void add_disk(struct text_table *table, const struct json_node *line)
{
	const struct json_node *service = json_node_get(line, "service");
	bool others = json_node_get(line, "others");
	char bytes[TEXT_UNIT_BYTES];

	text_table_add(table, others ? name_others(line)
				     : member_text_value("device", json_node_get(line, "device")));
	text_table_add(table,
		       others ? strdup("") : member_text_value("op", json_node_get(line, "op")));
	add_number(table, read_number(line, "requests"));
	text_table_add(table, strdup(text_bytes(read_number(line, "bytes"), bytes)));
	add_time(table, read_number(line, "queue_ns"));
	add_time(table, read_number(line, "service_ns"));
	add_bound(table, service, "p50");
	add_bound(table, service, "p99");
	add_time(table, read_number(line, "longest_ns"));
	add_number(table, read_number(line, "open"));
}

static int add_disks(const struct store *store, const struct store_session *session,
		     struct text_table *table)
{
	for (uint32_t i = 0; i < session->disks.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->disks.items[i], &tree);

		if (!line)
			return -ENOMEM;
		add_disk(table, line);
	}
	return 0;
}

/* "  beside it on vda: /batch.slice, 61 % of the disk's time, 3.0 GiB in 3000 requests" */
static void print_neighbour(const struct json_node *line, FILE *out)
{
	_cleanup_free_ char *device = member_text_value("device", json_node_get(line, "device"));
	_cleanup_free_ char *path =
		member_text_value("neighbour", json_node_get(line, "neighbour"));
	char bytes[TEXT_UNIT_BYTES];

	if (json_node_get(line, "others"))
		fprintf(out, "  and %" PRIu64 " more cgroups: ", read_number(line, "others"));
	else
		fprintf(out, "  beside it on %s: %s, %.0f %% of the disk's time, ",
			device ? device : "-", path ? path : "(a cgroup that is gone)",
			json_node_double(json_node_get(line, "share")) * 100);
	fprintf(out, "%s in %" PRIu64 " requests\n", text_bytes(read_number(line, "bytes"), bytes),
		read_number(line, "requests"));
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
		if (json_node_get(line, "service_ms"))
			print_neighbour(line, out);
	}
	return 0;
}

int text_report_disks(const struct store *store, const struct store_session *session, FILE *out)
{
	static const char *const heads[] = { "DISK",	"OP",  "REQUESTS", "BYTES",   "IN QUEUE",
					     "AT DISK", "P50", "P99",	   "LONGEST", "OPEN" };
	_cleanup_(text_table_done) struct text_table table;
	int r;

	text_table_init(&table, ARRAY_SIZE(heads));
	if (!session->disks.count)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		text_table_add(&table, strdup(heads[i]));
	r = add_disks(store, session, &table);
	if (r < 0)
		return r;
	fputs("\nrequests to disks; P50 and P99 are of the time at the disk\n", out);
	r = text_table_print(&table, 2, out);
	return r < 0 ? r : print_neighbours(store, session, out);
}
