/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_sockets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/line_table.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* Returns the largest value of all snapshots. */
static uint64_t read_most(const struct json_node *line, const char *key)
{
	return line_table_read(json_node_get(line, key), "most");
}

static void add_bytes(struct text_table *table, uint64_t bytes)
{
	char text[TEXT_UNIT_BYTES];

	text_table_add(table, strdup(bytes ? text_bytes(bytes, text) : "0"));
}

/* "10.0.0.5:5432", "[::1]:80", "3 more" */
static char *name_peer(const struct json_node *line)
{
	_cleanup_free_ char *address = member_text_value("address", json_node_get(line, "address"));
	char *text = NULL;
	int n;

	if (json_node_get(line, "others"))
		n = asprintf(&text, "%" PRIu64 " more", line_table_read(line, "others"));
	else
		n = asprintf(&text,
			     address && strchr(address, ':') ? "[%s]:%" PRIu64 : "%s:%" PRIu64,
			     address ? address : "-", line_table_read(line, "port"));
	return n < 0 ? NULL : text;
}

static void add_peer(struct text_table *table, const struct json_node *line)
{
	text_table_add(table, name_peer(line));
	text_table_add(table, json_node_get(line, "others")
				      ? strdup("")
				      : member_text_value("way", json_node_get(line, "way")));
	line_table_number(table, read_most(line, "connections"));
	line_table_number(table, line_table_read(line, "begun"));
	line_table_number(
		table, line_table_read(line, "refused") + line_table_read(line, "timed_out") +
			       line_table_read(line, "failed") + line_table_read(line, "given_up"));
	add_bytes(table, line_table_read(line, "bytes_in"));
	add_bytes(table, line_table_read(line, "bytes_out"));
	add_bytes(table, read_most(line, "unread_bytes"));
	add_bytes(table, read_most(line, "unsent_bytes"));
	add_bytes(table, read_most(line, "unacked_bytes"));
	line_table_number(table, line_table_read(line, "retransmits"));
	line_table_bound(table, json_node_get(line, "srtt"), "p50");
}

static bool is_listener(const struct json_node *line)
{
	return json_node_equals(json_node_get(line, "way"), "listens");
}

/* "  listens at 0.0.0.0:80: at most 129 of 128 wait to be accepted; full in 6 of 9 snapshots" */
static void print_listener(const struct json_node *line, FILE *out)
{
	_cleanup_free_ char *name = name_peer(line);

	fprintf(out,
		"  listens at %s: at most %" PRIu64 " waited to be accepted (asked for %" PRIu64
		")",
		name ? name : "-", read_most(line, "queue"), line_table_read(line, "queue_limit"));
	if (json_node_get(line, "full_looks"))
		fprintf(out, ", full in %" PRIu64 " of %" PRIu64 " snapshot%s",
			line_table_read(line, "full_looks"), line_table_read(line, "looks"),
			text_s(line_table_read(line, "looks")));
	if (json_node_get(line, "syn_queue"))
		fprintf(out, ", %" PRIu64 " on their way", read_most(line, "syn_queue"));
	if (json_node_get(line, "drops"))
		fprintf(out, ", %" PRIu64 " time%s one was dropped", line_table_read(line, "drops"),
			text_s(line_table_read(line, "drops")));
	fputs("\n", out);
}

/* Reads the lines: adds connections to the table, or prints the listeners. */
static int pass_lines(const struct store *store, const struct store_session *session,
		      struct text_table *table, FILE *out)
{
	for (uint32_t i = 0; i < session->sockets.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->sockets.items[i], &tree);

		if (!line)
			return -ENOMEM;
		if (table && !is_listener(line))
			add_peer(table, line);
		else if (!table && is_listener(line))
			print_listener(line, out);
	}
	return 0;
}

int text_report_sockets(const struct store *store, const struct store_session *session, FILE *out)
{
	static const char *const heads[] = {
		"PEER", "WAY",	  "MOST",   "BEGUN",   "FAILED", "IN",
		"OUT",	"UNREAD", "UNSENT", "UNACKED", "AGAIN",	 "SRTT"
	};
	_cleanup_(text_table_done) struct text_table table;
	int r;

	text_table_init(&table, ARRAY_SIZE(heads));
	if (!session->sockets.count)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		text_table_add(&table, strdup(heads[i]));
	r = pass_lines(store, session, &table, out);
	if (r < 0)
		return r;
	fputs("\nTCP connections; UNREAD, UNSENT, UNACKED: the most in one snapshot; SRTT: median\n",
	      out);
	r = text_table_print(&table, 2, out);
	return r < 0 ? r : pass_lines(store, session, NULL, out);
}
