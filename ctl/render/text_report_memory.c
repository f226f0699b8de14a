/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the OOM kills, the share of CPU time that was memory stall, direct reclaim and dirty
 * throttling by kind, and the other cgroups in reclaim.
 */
#include <inttypes.h>

#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/macro.h"

/* "  api (pid 81), which had 64.0 MiB of its own and 0 B of files; the limit is that of /api" */
static const char oom_kill[] =
	"  {comm} (pid {pid})[rss?, which had {rss.anon_bytes:bytes} of its own and "
	"{rss.file_bytes:bytes} of files][limit=machine?; the machine had no more][limit=cgroup?; "
	"the limit [limit_bytes?of {limit_bytes:bytes} ]is that of {limit_cgroup|limit_name}]\n";

/* Prints the share of CPU time that was memory stall, next to the share before. */
static void put_stall(const struct json_node *stall, FILE *out)
{
	static const char *const phases[] = { "during", "onset", "before" };
	const char *separator = "\nmemory stall on the CPU:";
	uint64_t all = 0;

	for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
		all += json_node_u64(json_node_get(json_node_get(stall, phases[i]), "stalled"));
	for (size_t i = 0; all && i < ARRAY_SIZE(phases); i++) {
		const struct json_node *phase = json_node_get(stall, phases[i]);
		uint64_t samples = json_node_u64(json_node_get(phase, "samples"));

		if (!samples)
			continue;
		fprintf(out, "%s %.1f %% of %" PRIu64 " sample%s %s", separator,
			100.0 * (double)json_node_u64(json_node_get(phase, "stalled")) /
				(double)samples,
			samples, text_s(samples), phases[i]);
		separator = ",";
	}
	if (all)
		fputs("\n", out);
}

static const struct column columns[] = {
	{ "KIND", "{kind}[device? on {device}]", .rest = "{others:n} more" },
	{ "TIMES", "{count:n}" },
	{ "TIME", "{time_ns:ns}" },
	{ "P50", "[!count=0?{p50:bound}]", .rest = "" },
	{ "P99", "[!count=0?{p99:bound}]", .rest = "" },
	{ "LONGEST", "{longest_ns:ns}" },
	{ "OPEN", "{open:n}" },
	{ "RECLAIMED", "{reclaimed_bytes:bytes}" },
};

static const struct section_table table = {
	.title = "direct reclaim and dirty throttling",
	.columns = columns,
	.n = ARRAY_SIZE(columns),
	.top = STORE_LINES,
};

/* "  other cgroups: /batch.slice, 812 ms in 90 events, 3.0 GiB reclaimed" */
static const char neighbour[] =
	"[stretches?[others?  and {others:n} more cgroup{others:s}: ]"
	"[!others?  other cgroups: " SECTIONS_NEIGHBOUR ", ]"
	"{direct_ms+limit_ms+compaction_ms+throttle_ms:n} ms in {stretches:n} event{stretches:s}, "
	"{reclaimed_bytes:bytes} reclaimed\n]";

void text_report_memory(struct session_lines *s)
{
	if (s->session->kills.count)
		fputs("\nkilled because memory ran out\n", s->out);
	session_lines_put(s, &s->session->kills, oom_kill);
	put_stall(json_node_get(s->end, "cpu_memory_stall"), s->out);
	if (section_table(s, &s->session->reclaim, &table))
		session_lines_put(s, &s->session->neighbours, neighbour);
}
