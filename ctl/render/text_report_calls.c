/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_calls.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define CALLS_TOP   8
#define FEW_SAMPLES 30 /* fewer make the shares rough */

static void add_number(struct text_table *table, const struct json_node *line, const char *key)
{
	const struct json_node *number = json_node_get(line, key);
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, json_node_u64(number));
	text_table_add(table, number ? strdup(text) : NULL);
}

static void add_time(struct text_table *table, const struct json_node *ns)
{
	char text[TEXT_UNIT_BYTES];

	text_table_add(table, ns ? strdup(text_duration_us(json_node_u64(ns) / NSEC_PER_USEC, text))
				 : NULL);
}

/* Adds a bound of a histogram; the last element has none. */
static void add_bound(struct text_table *table, const struct json_node *line, const char *key)
{
	const struct json_node *ns = json_node_member(line, key);

	if (ns && !json_node_u64(ns))
		text_table_add(table, strdup("longer"));
	else
		add_time(table, ns);
}

static void add_share(struct text_table *table, const struct json_node *share)
{
	char text[32];

	snprintf(text, sizeof(text), "%.1f %%", 100 * json_node_double(share));
	text_table_add(table, share ? strdup(text) : NULL);
}

static void add_call(struct text_table *table, const struct json_node *line)
{
	const struct json_node *call = json_node_get(line, "call");
	const struct json_node *longest = json_node_get(line, "longest");
	char *name = call ? member_text_value("call", call) : NULL;

	if (!name)
		name = member_text_value("call_reason", json_node_get(line, "call_reason"));
	text_table_add(table, name);
	add_share(table, json_node_get(line, "cpu_share"));
	add_time(table, json_node_get(line, "wait_ns"));
	add_number(table, line, "waits");
	add_number(table, line, "open");
	add_bound(table, line, "p50_ns");
	add_bound(table, line, "p99_ns");
	add_time(table, json_node_get(longest, "wait_ns"));
	text_table_add(table,
		       longest ? member_text_value("comm", json_node_get(longest, "comm")) : NULL);
	add_number(table, longest, "tid");
}

/*
 * Prints the number of CPU samples that the shares in the table refer to, and where all of them
 * hit.
 */
static int put_ran(const struct store *store, const struct store_session *session, FILE *out)
{
	static const struct {
		const char *key, *text;
	} places[] = { { "user", "in user mode" },
		       { "calls", "in system calls" },
		       { "compat_calls", "in system calls of 32 bits" },
		       { "faults", "in page faults" },
		       { "interrupts", "in interrupts" },
		       { "kernel_threads", "of kernel threads" } };
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	const struct json_node *end = text_report_lines_read(store, session->end, &tree);
	const struct json_node *ran = json_node_get(end, "cpu_samples");
	uint64_t all = json_node_u64(json_node_get(ran, "all"));

	if (!end)
		return session->end == STORE_NONE ? 0 : -ENOMEM;
	if (!all)
		return 0;
	fprintf(out, "  ON CPU is of %" PRIu64 " sample%s%s", all, text_s(all),
		all < FEW_SAMPLES ? ", which is few" : "");
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		uint64_t n = json_node_u64(json_node_get(ran, places[i].key));

		if (n)
			fprintf(out, ", %.1f %% %s", 100.0 * (double)n / (double)all,
				places[i].text);
	}
	fputs("\n", out);
	return 0;
}

int text_report_calls(const struct store *store, const struct store_session *session, FILE *out)
{
	static const char *const heads[] = { "SYSTEM CALL", "ON CPU", "WAITED",	 "WAITS",  "OPEN",
					     "P50",	    "P99",    "LONGEST", "THREAD", "TID" };
	uint32_t n = MIN(session->calls.count, (uint32_t)CALLS_TOP);
	_cleanup_(text_table_done) struct text_table table;
	int r;

	text_table_init(&table, ARRAY_SIZE(heads));
	table.spare = 1u << 5 | 1u << 6; /* P50, P99 */
	if (!n)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		text_table_add(&table, strdup(heads[i]));
	for (uint32_t i = 0; i < n; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->calls.items[i], &tree);

		if (!line)
			return -ENOMEM;
		if (!json_node_get(line, "others"))
			add_call(&table, line);
	}
	section_head(out, "system calls", "that threads waited in, or ran in");
	r = text_table_print(&table, 2, out);
	if (r == 0)
		r = put_ran(store, session, out);
	if (session->calls.count > n)
		fprintf(out, "  and %" PRIu32 " more\n", session->calls.count - n);
	return r;
}
