/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints how long threads waited for a CPU, and the cgroups that used the CPU in the meantime. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
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

static void print_octaves(struct session_lines *s, const struct octaves *o)
{
	static const char *const heads[] = { "UP TO", "WAITS", "" };
	_cleanup_(text_table_done) struct text_table table;
	char text[TEXT_UNIT_BYTES];

	text_table_init(&table, ARRAY_SIZE(heads));
	table.rigid = ~0u;
	text_table_words(&table, heads, ARRAY_SIZE(heads));
	for (unsigned int i = o->first; i <= o->last; i++) {
		/* Only before the last element there may be a gap. */
		if (!o->waits[i] && o->last == STEPS - 1)
			continue;
		text_duration_us((1ull << i) / NSEC_PER_USEC, text);
		text_table_printf(&table, "%s", i == STEPS - 1 ? "longer" : text);
		text_table_printf(&table, "%" PRIu64, o->waits[i]);
		text_table_add(&table,
			       section_bar((double)o->waits[i] / (double)o->most, BAR_COLUMNS));
	}
	section_print(s, &table);
}

/* Prints "/batch.slice 640 ms", unless it is a small part of all waits. */
static void put_behind(const char *form, const struct json_node *line, uint64_t ms, uint64_t all_ms,
		       unsigned int *said, FILE *out)
{
	if (!ms || ms * 100 < all_ms * LEAST_PCT)
		return;
	fputs((*said)++ ? ", " : "  behind: ", out);
	member_text_put(form, line, out);
	fprintf(out, " %" PRIu64 " ms", ms);
}

/* Prints the cgroups that used the CPU in the meantime. */
static void print_behind(struct session_lines *s)
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
	const struct json_node *runq = json_node_get(s->end, "runq"), *line;
	uint64_t all_ms = json_node_u64(json_node_get(runq, "wait_ms"));
	unsigned int said = 0;

	session_lines_for_each (line, s, &s->session->neighbours, STORE_LINES)
		put_behind("[others?other cgroups][!others?" SECTIONS_NEIGHBOUR "]", line,
			   json_node_u64(json_node_get(line, "queue_ms")), all_ms, &said, s->out);
	for (size_t i = 0; i < ARRAY_SIZE(rest); i++)
		put_behind(rest[i].runner, NULL, json_node_u64(json_node_get(runq, rest[i].key)),
			   all_ms, &said, s->out);
	if (said)
		fputs("\n", s->out);
}

static void print_longest(const struct json_node *line, FILE *out)
{
	const struct json_node *one = json_node_first(json_node_get(line, "longest"));
	int i = 0;

	for (; one && i < LONGEST_MAX; i++, one = json_node_next(one)) {
		fputs(i ? ", " : "  longest: ", out);
		member_text_put("{wait_ns:ns} {comm} ({tid:n})", one, out);
	}
	if (i)
		fputs("\n", out);
}

/* Prints the line of all waits for a CPU: the others are of disks, locks, system calls. */
static void print_all(struct session_lines *s, const struct json_node *line)
{
	struct octaves octaves;

	sum_octaves(line, &octaves);
	if (!octaves.most)
		return;
	section_begin(s->out, "waits for a CPU");
	member_text_put("{count:n}, {sum:ns} in all; half of them at most {p50:ns}, 99 of 100 "
			"[p99?at most {p99:ns}][!p99?longer]\n",
			line, s->out);
	print_octaves(s, &octaves);
	print_behind(s);
	print_longest(line, s->out);
}

void text_report_queue(struct session_lines *s)
{
	const struct json_node *line;

	session_lines_for_each (line, s, &s->session->histograms, STORE_LINES) {
		if (!member_text_holds("signal=runq", line) ||
		    !member_text_holds("key.of=all", line))
			continue;
		print_all(s, line);
		return;
	}
}
