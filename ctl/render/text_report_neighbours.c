/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the other cgroups that had the CPUs. */
#include <inttypes.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/macro.h"

#define NAMED_MAX 3   /* in a line for a person */
#define LEAST_MS  50u /* per second: less is not named, because it would be 0.0 CPUs */

/* The text of the line so far. */
struct said {
	uint64_t duration_ms;
	uint64_t cpus;
	uint64_t named_ms;
	uint64_t named, unnamed; /* cgroups */
};

static double in_cpus(const struct said *said, uint64_t ms)
{
	return (double)ms / (double)MAX(said->duration_ms, 1u);
}

static void put_head(FILE *out)
{
	section_begin(out, "neighbours");
	fputs("other cgroups had ", out);
}

/* "/batch.slice 1.6 of 2 CPUs (stress)"; only the first one has the total. */
static void put_named(struct said *said, const struct json_node *line, uint64_t ms, FILE *out)
{
	if (said->named)
		fputs(", ", out);
	else
		put_head(out);
	member_text_put(SECTIONS_NEIGHBOUR, line, out);
	fprintf(out, " %.1f", in_cpus(said, ms));
	if (!said->named)
		fprintf(out, " of %.1f CPUs", (double)said->cpus);
	member_text_put("[!comm=?[comm? ({comm})]]", line, out);
	said->named++;
	said->named_ms += ms;
}

static void add_line(struct said *said, const struct json_node *line, FILE *out)
{
	const struct json_node *cpu = json_node_get(line, "cpu_ms");
	const struct json_node *others = json_node_get(line, "others");
	uint64_t ms = json_node_u64(cpu);

	if (!cpu) /* a line of another signal */
		return;
	if (!others && said->named < NAMED_MAX && ms * MSEC_PER_SEC >= LEAST_MS * said->duration_ms)
		put_named(said, line, ms, out);
	else
		said->unnamed += others ? json_node_u64(others) : 1;
}

/*
 * Prints the rest of the CPU time: cgroups that are not named, the session's own cgroup, and idle
 * time.
 */
static void put_rest(const struct said *said, const struct json_node *cpu, FILE *out)
{
	uint64_t others_ms = json_node_u64(json_node_get(cpu, "others_ms"));
	uint64_t left_ms = others_ms - MIN(others_ms, said->named_ms);
	uint64_t unseen_ms = json_node_u64(json_node_get(cpu, "unseen_ms"));

	if (!said->named) {
		put_head(out);
		fprintf(out, "%.1f of %.1f CPUs", in_cpus(said, others_ms), (double)said->cpus);
	} else if (left_ms && said->unnamed) {
		fprintf(out, ", %" PRIu64 " other%s %.1f", said->unnamed, text_s(said->unnamed),
			in_cpus(said, left_ms));
	}
	fprintf(out, "; this one %.1f; idle %.1f",
		in_cpus(said, json_node_u64(json_node_get(cpu, "own_ms"))),
		in_cpus(said, json_node_u64(json_node_get(cpu, "idle_ms"))));
	if (unseen_ms * MSEC_PER_SEC >= LEAST_MS * said->duration_ms)
		fprintf(out, "; idle or unseen, without a tick %.1f", in_cpus(said, unseen_ms));
	fputs("\n", out);
}

void text_report_neighbours(struct session_lines *s)
{
	const struct json_node *cpu = json_node_get(s->end, "cpu"), *line;
	struct said said = { .duration_ms = s->session->length_ms[STORE_DURING] };

	if (!cpu)
		return;
	said.cpus = json_node_u64(json_node_get(cpu, "cpus"));
	session_lines_for_each (line, s, &s->session->neighbours, STORE_LINES)
		add_line(&said, line, s->out);
	put_rest(&said, cpu, s->out);
}
