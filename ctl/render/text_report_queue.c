/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_queue.h"

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

#define BAR_COLUMNS 40
#define STEPS	    64 /* octaves of nanoseconds */
#define LONGEST_MAX 3
#define LEAST_PCT   1 /* of all waits: a smaller share is not named */

/* Waits by octave: element i counts waits of at most 1 << i ns; the last one all longer waits. */
struct octaves {
	uint64_t waits[STEPS];
	unsigned int first, last; /* the first and last element that are not 0 */
	uint64_t most;
};

static unsigned int find_octave(uint64_t le_ns)
{
	unsigned int octave = 0;

	while (octave < STEPS - 1 && 1ull << octave < le_ns)
		octave++;
	return octave;
}

static void sum_octaves(const struct json_node *line, struct octaves *ret_octaves)
{
	const struct json_node *bucket = json_node_first(json_node_get(line, "buckets"));
	struct octaves o = { .first = STEPS };

	for (; bucket; bucket = json_node_next(bucket)) {
		const struct json_node *le = json_node_first(bucket);
		uint64_t le_ns = json_node_u64(le);
		unsigned int octave = le_ns ? find_octave(le_ns) : STEPS - 1;

		o.waits[octave] += le ? json_node_u64(json_node_next(le)) : 0;
		o.first = MIN(o.first, octave);
		o.last = MAX(o.last, octave);
		o.most = MAX(o.most, o.waits[octave]);
	}
	*ret_octaves = o;
}

static char *print_number(uint64_t number)
{
	char *text = NULL;

	return asprintf(&text, "%" PRIu64, number) < 0 ? NULL : text;
}

static char *print_ns(uint64_t ns)
{
	char text[TEXT_UNIT_BYTES];

	return strdup(text_duration_us(ns / NSEC_PER_USEC, text));
}

static int print_octaves(const struct octaves *o, FILE *out)
{
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, 3);
	table.rigid = ~0u;
	text_table_add(&table, strdup("UP TO"));
	text_table_add(&table, strdup("WAITS"));
	text_table_add(&table, strdup(""));
	for (unsigned int i = o->first; i <= o->last; i++) {
		/* Only before the last element there may be a gap. */
		if (!o->waits[i] && o->last == STEPS - 1)
			continue;
		text_table_add(&table, i == STEPS - 1 ? strdup("longer") : print_ns(1ull << i));
		text_table_add(&table, print_number(o->waits[i]));
		text_table_add(&table,
			       section_bar((double)o->waits[i] / (double)o->most, BAR_COLUMNS));
	}
	return text_table_print(&table, 2, out);
}

/* Prints "; behind /batch.slice 640 ms"; only the first one has "behind". */
static void put_behind(const char *runner, uint64_t ms, uint64_t all_ms, unsigned int *said,
		       FILE *out)
{
	if (!ms || ms * 100 < all_ms * LEAST_PCT)
		return;
	fprintf(out, "%s%s %" PRIu64 " ms", (*said)++ ? ", " : "  behind: ", runner, ms);
}

static int put_neighbours(const struct store *store, const struct store_session *session,
			  uint64_t all_ms, unsigned int *said, FILE *out)
{
	for (uint32_t i = 0; i < session->neighbours.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->neighbours.items[i], &tree);
		_cleanup_free_ char *name = NULL;

		if (!line)
			return -ENOMEM;
		if (!json_node_get(line, "queue_ms"))
			continue;
		name = json_node_get(line, "others") ? strdup("other cgroups")
						     : neighbour_text(line);
		put_behind(name ? name : "-", line_table_read(line, "queue_ms"), all_ms, said, out);
	}
	return 0;
}

/* Prints the cgroups that used the CPU in the meantime. */
static int print_behind(const struct store *store, const struct store_session *session, FILE *out)
{
	static const struct {
		const char *key, *runner;
	} rest[] = {
		{ "own_ms", "its cgroup's tasks" },
		{ "idle_ms", "no thread (the CPU woke up, or cpu.max held it back)" },
		{ "moved_ms", "others on a CPU that it was moved from" },
		{ "unseen_ms", "not known" },
		{ "unlisted_ms", "cgroups without a row in the table" },
	};
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	const struct json_node *end = text_report_lines_read(store, session->end, &tree);
	const struct json_node *runq = json_node_get(end, "runq");
	uint64_t all_ms = line_table_read(runq, "wait_ms");
	unsigned int said = 0;
	int r;

	if (!end && session->end != STORE_NONE)
		return -ENOMEM;
	r = put_neighbours(store, session, all_ms, &said, out);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rest); i++)
		put_behind(rest[i].runner, line_table_read(runq, rest[i].key), all_ms, &said, out);
	if (said)
		fputs("\n", out);
	return r;
}

static void print_longest(const struct json_node *line, FILE *out)
{
	const struct json_node *one = json_node_first(json_node_get(line, "longest"));
	char text[TEXT_UNIT_BYTES];

	for (int i = 0; one && i < LONGEST_MAX; i++, one = json_node_next(one)) {
		_cleanup_free_ char *comm = member_text_value("comm", json_node_get(one, "comm"));

		fprintf(out, "%s%s %s (%" PRIu64 ")", i ? ", " : "  longest: ",
			text_duration_us(line_table_read(one, "wait_ns") / NSEC_PER_USEC, text),
			comm ? comm : "-", line_table_read(one, "tid"));
		if (i == LONGEST_MAX - 1 || !json_node_next(one))
			fputs("\n", out);
	}
}

/* "half of them at most 6.3 ms, 99 of 100 at most 12 ms" */
static void print_head(const struct json_node *line, FILE *out)
{
	char sum[TEXT_UNIT_BYTES], half[TEXT_UNIT_BYTES], most[TEXT_UNIT_BYTES];
	uint64_t p99 = line_table_read(line, "p99");

	section_head(out, "waits for a CPU",
		     "%" PRIu64 ", %s in all; half of them at most %s, 99 of 100 %s%s",
		     line_table_read(line, "count"),
		     text_duration_us(line_table_read(line, "sum") / NSEC_PER_USEC, sum),
		     text_duration_us(line_table_read(line, "p50") / NSEC_PER_USEC, half),
		     p99 ? "at most " : "longer",
		     p99 ? text_duration_us(p99 / NSEC_PER_USEC, most) : "");
}

/*
 * Returns whether a line is that of all waits for a CPU: other lines of this type are of disks,
 * locks, system calls.
 */
static bool is_of_all(const struct json_node *line)
{
	return json_node_equals(json_node_get(line, "signal"), "runq") &&
	       json_node_equals(json_node_get(json_node_get(line, "key"), "of"), "all");
}

/* Reads the line of all waits for a CPU into the tree; *ret_line is NULL if there is none. */
static int find_all(const struct store *store, const struct store_session *session,
		    struct json_tree *tree, const struct json_node **ret_line)
{
	*ret_line = NULL;
	for (uint32_t i = 0; i < session->histograms.count; i++) {
		const struct json_node *line =
			text_report_lines_read(store, session->histograms.items[i], tree);

		if (!line)
			return -ENOMEM;
		if (is_of_all(line)) {
			*ret_line = line;
			return 0;
		}
		json_tree_done(tree);
		*tree = (struct json_tree){ 0 };
	}
	return 0;
}

int text_report_queue(const struct store *store, const struct store_session *session, FILE *out)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	struct octaves octaves;
	const struct json_node *line;
	int r;

	r = find_all(store, session, &tree, &line);
	if (r < 0 || !line)
		return r;
	sum_octaves(line, &octaves);
	if (!octaves.most)
		return 0;
	print_head(line, out);
	r = print_octaves(&octaves, out);
	if (r == 0)
		r = print_behind(store, session, out);
	print_longest(line, out);
	return r;
}
