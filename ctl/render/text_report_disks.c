/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_disks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/line_table.h"
#include "ctl/render/neighbour_text.h"
#include "ctl/render/section.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static char *name_others(const struct json_node *line)
{
	char *text = NULL;

	return asprintf(&text, "%" PRIu64 " more", line_table_read(line, "others")) < 0 ? NULL
											: text;
}

static void add_disk(struct text_table *table, const struct json_node *line, bool errors)
{
	const struct json_node *service = json_node_get(line, "service");
	bool others = json_node_get(line, "others");
	char bytes[TEXT_UNIT_BYTES];

	text_table_add(table, others ? name_others(line)
				     : member_text_value("device", json_node_get(line, "device")));
	text_table_add(table,
		       others ? strdup("") : member_text_value("op", json_node_get(line, "op")));
	line_table_number(table, line_table_read(line, "requests"));
	text_table_add(table, strdup(text_bytes(line_table_read(line, "bytes"), bytes)));
	line_table_time(table, line_table_read(line, "queue_ns"));
	line_table_time(table, line_table_read(line, "service_ns"));
	line_table_bound(table, service, "p50");
	line_table_bound(table, service, "p99");
	line_table_time(table, line_table_read(line, "longest_ns"));
	line_table_number(table, line_table_read(line, "open"));
	if (errors)
		line_table_number(table, line_table_read(line, "errors"));
}

/* Writes the words of an array, as " on vda3, nvme0n1p1"; nothing if there are none. */
static void print_words(const struct json_node *list, const char *before, const char *key,
			uint64_t more, FILE *out)
{
	bool first = true;

	for (const struct json_node *one = json_node_first(list); one; one = json_node_next(one)) {
		_cleanup_free_ char *word = member_text_value(key, one);

		fprintf(out, "%s%s", first ? before : ", ", word ? word : "-");
		first = false;
	}
	if (more)
		fprintf(out, " and %" PRIu64 " more", more);
}

/* "dm-0 (vg0-data) on vda3 at /srv"; nothing for a device with only a name. */
static void print_one(const struct json_node *one, bool *any, FILE *out)
{
	static const char *const keys[] = { "name", "level", "file" };
	const struct json_node *over = json_node_get(one, "over");
	const struct json_node *points = json_node_get(one, "mounts");
	_cleanup_free_ char *device = member_text_value("device", json_node_get(one, "device"));
	bool swap = json_node_get(one, "swap");

	if (!over && !points && !swap)
		return;
	fprintf(out, "%s%s", *any ? "; " : "  ", device ? device : "-");
	*any = true;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct json_node *name = json_node_get(one, keys[i]);
		_cleanup_free_ char *text = name ? member_text_value(keys[i], name) : NULL;

		if (text)
			fprintf(out, " (%s)", text);
	}
	print_words(over, " on ", "device", line_table_read(one, "over_more"), out);
	print_words(points, " at ", "mount", line_table_read(one, "mounts_more"), out);
	if (swap)
		fputs(" for swap", out);
}

/*
 * Returns the name of the disk of a line, which the caller frees; NULL: it has none, or no memory.
 */
static char *read_device(const struct store *store, uint32_t number)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	const struct json_node *line = text_report_lines_read(store, number, &tree);

	return member_text_value("device", json_node_get(line, "device"));
}

/*
 * Returns whether an earlier line is of the same disk, such as the line of its reads before that of
 * its writes.
 */
static bool is_told(const struct store *store, const struct store_session *session, uint32_t line)
{
	_cleanup_free_ char *device = read_device(store, session->disks.items[line]);
	bool shown = false;

	for (uint32_t i = 0; device && !shown && i < line; i++) {
		_cleanup_free_ char *before = read_device(store, session->disks.items[i]);

		shown = before && !strcmp(before, device);
	}
	return shown;
}

/* Prints once per disk the devices on it, the devices below it, and their mount points. */
static int print_stacks(const struct store *store, const struct store_session *session, FILE *out)
{
	for (uint32_t i = 0; i < session->disks.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->disks.items[i], &tree);
		const struct json_node *one = json_node_first(json_node_get(line, "stack"));
		bool any = false;

		if (!line)
			return -ENOMEM;
		if (!one || is_told(store, session, i))
			continue;
		for (; one; one = json_node_next(one))
			print_one(one, &any, out);
		if (any)
			fputs("\n", out);
	}
	return 0;
}

/*
 * Returns whether requests to any disk have ended with an error: only then the table has a column
 * for errors.
 */
static bool has_errors(const struct store *store, const struct store_session *session)
{
	bool errors = false;

	for (uint32_t i = 0; !errors && i < session->disks.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };

		errors = line_table_read(
			text_report_lines_read(store, session->disks.items[i], &tree), "errors");
	}
	return errors;
}

static int add_disks(const struct store *store, const struct store_session *session,
		     struct text_table *table, bool errors)
{
	for (uint32_t i = 0; i < session->disks.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->disks.items[i], &tree);

		if (!line)
			return -ENOMEM;
		add_disk(table, line, errors);
	}
	return 0;
}

/* "  also on vda: /batch.slice, 61 % of the disk's time, 3.0 GiB in 3000 requests" */
static void print_neighbour(const struct json_node *line, FILE *out)
{
	_cleanup_free_ char *device = member_text_value("device", json_node_get(line, "device"));
	_cleanup_free_ char *name = neighbour_text(line);
	char bytes[TEXT_UNIT_BYTES];

	if (json_node_get(line, "others"))
		fprintf(out, "  and %" PRIu64 " more cgroup%s: ", line_table_read(line, "others"),
			text_s(line_table_read(line, "others")));
	else
		fprintf(out, "  also on %s: %s, %.0f %% of the disk's time, ",
			device ? device : "-", name ? name : "-",
			json_node_double(json_node_get(line, "share")) * 100);
	fprintf(out, "%s in %" PRIu64 " request%s\n",
		text_bytes(line_table_read(line, "bytes"), bytes),
		line_table_read(line, "requests"), text_s(line_table_read(line, "requests")));
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
	static const char *const heads[] = { "DISK",	 "OP",	    "REQUESTS", "BYTES",
					     "IN QUEUE", "AT DISK", "P50",	"P99",
					     "LONGEST",	 "OPEN",    "ERRORS" };
	bool errors = has_errors(store, session);
	size_t columns = ARRAY_SIZE(heads) - !errors;
	_cleanup_(text_table_done) struct text_table table;
	int r;

	text_table_init(&table, columns);
	table.spare = 1u << 6 | 1u << 9; /* P50, OPEN */
	if (!session->disks.count)
		return 0;
	for (size_t i = 0; i < columns; i++)
		text_table_add(&table, strdup(heads[i]));
	r = add_disks(store, session, &table, errors);
	if (r < 0)
		return r;
	section_head(out, "disks", "requests; P50 and P99 are of the time at the disk");
	r = text_table_print(&table, 2, out);
	if (r == 0)
		r = print_stacks(store, session, out);
	return r < 0 ? r : print_neighbours(store, session, out);
}
