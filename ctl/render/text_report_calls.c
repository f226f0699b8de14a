/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the system calls in which threads waited or ran, and where else they ran. */
#include <inttypes.h>

#include "ctl/cli/member_text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/macro.h"

#define CALLS_TOP   8
#define FEW_SAMPLES 30 /* fewer make the shares rough */

static const struct column columns[] = {
	{ "SYSTEM CALL", "{call|call_reason}" },
	{ "ON CPU", "{cpu_share|-:tenths}" },
	{ "WAITED", "{wait_ns|-:ns}" },
	{ "WAITS", "{waits|-:n}" },
	{ "OPEN", "{open|-:n}" },
	{ "P50", "{p50_ns|-:bound}", .flags = COLUMN_SPARE },
	{ "P99", "{p99_ns|-:bound}", .flags = COLUMN_SPARE },
	{ "LONGEST", "{longest.wait_ns|-:ns}" },
	{ "THREAD", "{longest.comm}" },
	{ "TID", "{longest.tid|-:n}" },
};

static const struct section_table table = {
	.head = "system calls",
	.title = "that threads waited in, or ran in",
	.columns = columns,
	.n = ARRAY_SIZE(columns),
	.top = CALLS_TOP,
	.rows = "!others",
};

/* Prints the number of CPU samples that the shares refer to, and where all of them hit. */
static void put_ran(const struct json_node *ran, FILE *out)
{
	static const struct {
		const char *key, *text;
	} places[] = { { "user", "in user mode" },
		       { "calls", "in system calls" },
		       { "compat_calls", "in system calls of 32 bits" },
		       { "faults", "in page faults" },
		       { "interrupts", "in interrupts" },
		       { "kernel_threads", "of kernel threads" } };
	uint64_t all = json_node_u64(json_node_get(ran, "all"));

	if (!all)
		return;
	member_text_put("  ON CPU is of {all:n} sample{all:s}", ran, out);
	fputs(all < FEW_SAMPLES ? ", which is few" : "", out);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		uint64_t n = json_node_u64(json_node_get(ran, places[i].key));

		if (n)
			fprintf(out, ", %.1f %% %s", 100.0 * (double)n / (double)all,
				places[i].text);
	}
	fputs("\n", out);
}

void text_report_calls(struct session_lines *s)
{
	if (!section_table(s, &s->session->calls, &table))
		return;
	put_ran(json_node_get(s->end, "cpu_samples"), s->out);
	section_more(s->out, s->session->calls.count, CALLS_TOP);
}
