/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/html_histograms.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/html_text.h"
#include "ctl/render/session_lines.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/*
 * One scale for all pictures: half octaves from 1 us to 17 s; the last step has all longer values.
 */
#define FIRST_OCTAVE 10
#define LAST_OCTAVE  34
#define STEPS	     (2 * (LAST_OCTAVE - FIRST_OCTAVE) + 2)
#define STEP_PX	     6
#define HIGH_PX	     64
#define LABEL_PX     14
#define TICK_OCTAVES 5 /* from one label of the scale to the next */

static uint64_t read_number(const struct json_node *line, const char *key)
{
	return json_node_u64(json_node_get(line, key));
}

/* Returns the step of the scale that ends at `le_ns`; 0: there is no bound. */
static unsigned int find_step(uint64_t le_ns)
{
	unsigned int octave = FIRST_OCTAVE;

	while (octave < LAST_OCTAVE && 1ull << octave < le_ns)
		octave++;
	if (!le_ns || 1ull << octave < le_ns)
		return STEPS - 1;
	/* 3 << n is between two powers of two. */
	return 2 * (octave - FIRST_OCTAVE) -
	       (octave > FIRST_OCTAVE && le_ns <= 3ull << (octave - 2));
}

static void sum_steps(const struct json_node *line, uint64_t ret_counts[STEPS])
{
	const struct json_node *bucket = json_node_first(json_node_get(line, "buckets"));

	memset(ret_counts, 0, STEPS * sizeof(*ret_counts));
	for (; bucket; bucket = json_node_next(bucket)) {
		const struct json_node *le = json_node_first(bucket);

		if (le)
			ret_counts[find_step(json_node_u64(le))] +=
				json_node_u64(json_node_next(le));
	}
}

/* ---- the object of a histogram */

static void put_member(const struct json_node *key, const char *name, const char *before, FILE *out)
{
	_cleanup_free_ char *text = member_text_value(name, json_node_get(key, name));

	if (!text || !json_node_get(key, name))
		return;
	fputs(before, out);
	html_text_put(text, strlen(text), out);
}

/* The kinds of histograms: the signal of a line, and the other members of its key. */
static const struct {
	const char *signal, *of, *says;
	const char *members[4];
} kinds[] = {
	{ "runq", "all", "waits for a CPU", {} },
	{ "block", "disk", "requests:", { "device", "op", "part" } },
	{ "lock", "all", "waits for locks", {} },
	{ "lock", "lock", "waits for lock", { "symbol", "address" } },
	{ "syscall", "call", "waits in", { "call", "number" } },
	{ "socket", "socket", "connections:", { "part" } },
	{ "reclaim", "reclaim", "memory:", { "kind", "device" } },
};

/*
 * Returns the number of the line's kind; ARRAY_SIZE(kinds): it is of a part of a kind, or of no
 * kind.
 */
static size_t find_kind(const struct json_node *line)
{
	const struct json_node *key = json_node_get(line, "key");
	size_t i = 0;

	if (!key || json_node_member(key, "size_bytes"))
		return ARRAY_SIZE(kinds);
	while (i < ARRAY_SIZE(kinds) &&
	       !(json_node_equals(json_node_get(line, "signal"), kinds[i].signal) &&
		 json_node_equals(json_node_get(key, "of"), kinds[i].of)))
		i++;
	return i;
}

static void put_time(const struct json_node *line, const char *key, const char *before, FILE *out)
{
	uint64_t ns = read_number(line, key);
	char text[TEXT_UNIT_BYTES];

	fprintf(out, "%s%s", before,
		ns ? text_duration_us(ns / NSEC_PER_USEC, text) : "longer than all steps");
}

/* Prints "requests: loop0 write service: 7; half of them at most 98 us, 99 of 100 at most 4 ms". */
static void put_caption(const struct json_node *line, size_t kind, FILE *out)
{
	fputs("<figcaption>", out);
	fputs(kinds[kind].says, out);
	for (size_t i = 0; i < ARRAY_SIZE(kinds[kind].members) && kinds[kind].members[i]; i++)
		put_member(json_node_get(line, "key"), kinds[kind].members[i], " ", out);
	fprintf(out, ": %" PRIu64, read_number(line, "count"));
	put_time(line, "p50", "; half of them at most ", out);
	put_time(line, "p99", ", 99 of 100 at most ", out);
	fputs("</figcaption>\n", out);
}

/* ---- the picture */

static uint64_t end_of(unsigned int step)
{
	return step % 2 ? 3ull << (FIRST_OCTAVE + step / 2 - 1) : 1ull << (FIRST_OCTAVE + step / 2);
}

static void put_bar(unsigned int step, uint64_t count, uint64_t most, FILE *out)
{
	unsigned int high = MAX(1u, (unsigned int)((double)count * HIGH_PX / (double)most));
	char text[TEXT_UNIT_BYTES];

	fprintf(out,
		"<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\"><title>%s %s: %" PRIu64
		"</title></rect>",
		step * STEP_PX, HIGH_PX - high, STEP_PX - 1, high,
		step == STEPS - 1 ? "longer than" : "at most",
		text_duration_us(end_of(MIN(step, (unsigned int)STEPS - 2)) / NSEC_PER_USEC, text),
		count);
}

static void put_scale(FILE *out)
{
	fprintf(out, "<path d=\"M0 %u.5H%u\"/>", HIGH_PX, STEPS * STEP_PX);
	for (unsigned int step = 0; step < STEPS - 1; step += 2 * TICK_OCTAVES) {
		char text[TEXT_UNIT_BYTES];

		fprintf(out, "<text x=\"%u\" y=\"%u\">%s</text>", step * STEP_PX,
			HIGH_PX + LABEL_PX - 2,
			text_duration_us(end_of(step) / NSEC_PER_USEC, text));
	}
}

static void put_picture(const struct json_node *line, size_t kind, FILE *out)
{
	uint64_t counts[STEPS], most = 1;

	sum_steps(line, counts);
	for (unsigned int i = 0; i < STEPS; i++)
		most = MAX(most, counts[i]);
	fputs("<figure>", out);
	put_caption(line, kind, out);
	fprintf(out, "<svg viewBox=\"0 0 %u %u\" role=\"img\">", STEPS * STEP_PX,
		HIGH_PX + LABEL_PX);
	for (unsigned int i = 0; i < STEPS; i++)
		if (counts[i])
			put_bar(i, counts[i], most, out);
	put_scale(out);
	fputs("</svg></figure>\n", out);
}

int html_histograms_put(const struct store *store, uint32_t session, FILE *out)
{
	_cleanup_(session_lines_done) struct session_lines s;
	const struct store_lines *list = &store->sessions[session].histograms;
	uint32_t put = 0, left = list->left_out;
	const struct json_node *line;

	session_lines_open(&s, store, session, out);
	session_lines_for_each (line, &s, list, STORE_LINES) {
		size_t kind = find_kind(line);

		if (kind == ARRAY_SIZE(kinds) || !read_number(line, "count"))
			continue;
		if (put == HTML_HISTOGRAMS_MAX) {
			left++;
			continue;
		}
		if (!put++)
			fputs("<section class=\"histograms\">\n<h2>how long it took</h2>\n", out);
		put_picture(line, kind, out);
	}
	if (left)
		fprintf(out, "<p>and %" PRIu32 " more in the lines</p>\n", left);
	if (put)
		fputs("</section>\n", out);
	return s.error;
}
