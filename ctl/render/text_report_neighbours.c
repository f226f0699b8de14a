/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_neighbours.h"

#include <errno.h>
#include <inttypes.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/render/neighbour_text.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
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
	fprintf(out, "\n%sneighbours%s: other cgroups had ", terminal_on(STYLE_HEAD),
		terminal_off());
}

/* "/batch.slice 1.6 of 2 CPUs (stress)"; only the first one has the total. */
static void put_named(struct said *said, const struct json_node *line, uint64_t ms, FILE *out)
{
	_cleanup_free_ char *name = neighbour_text(line);
	_cleanup_free_ char *comm = member_text_value("comm", json_node_get(line, "comm"));

	if (said->named)
		fputs(", ", out);
	else
		put_head(out);
	fprintf(out, "%s %.1f", name ? name : "-", in_cpus(said, ms));
	if (!said->named)
		fprintf(out, " of %.1f CPUs", (double)said->cpus);
	if (comm && *comm)
		fprintf(out, " (%s)", comm);
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

static int add_lines(const struct store *store, const struct store_session *session,
		     struct said *said, FILE *out)
{
	for (uint32_t i = 0; i < session->neighbours.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->neighbours.items[i], &tree);

		if (!line)
			return -ENOMEM;
		add_line(said, line, out);
	}
	return 0;
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
		fprintf(out, ", %" PRIu64 " other%s %.1f", said->unnamed,
			said->unnamed == 1 ? "" : "s", in_cpus(said, left_ms));
	}
	fprintf(out, "; this one %.1f; idle %.1f",
		in_cpus(said, json_node_u64(json_node_get(cpu, "own_ms"))),
		in_cpus(said, json_node_u64(json_node_get(cpu, "idle_ms"))));
	if (unseen_ms * MSEC_PER_SEC >= LEAST_MS * said->duration_ms)
		fprintf(out, "; idle or unseen, without a tick %.1f", in_cpus(said, unseen_ms));
	fputs("\n", out);
}

int text_report_neighbours(const struct store *store, const struct store_session *session,
			   FILE *out)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	const struct json_node *end = text_report_lines_read(store, session->end, &tree);
	const struct json_node *cpu = json_node_get(end, "cpu");
	struct said said = { .duration_ms = session->length_ms[STORE_DURING] };
	int r;

	if (!cpu)
		return end || session->end == STORE_NONE ? 0 : -ENOMEM;
	said.cpus = json_node_u64(json_node_get(cpu, "cpus"));
	r = add_lines(store, session, &said, out);
	if (r == 0)
		put_rest(&said, cpu, out);
	return r;
}
