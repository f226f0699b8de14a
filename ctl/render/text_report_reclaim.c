/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints direct reclaim and dirty throttling by kind, and the other cgroups in reclaim. */
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/macro.h"

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
	"[stretches?[others?  and {others:n} more cgroup{others:s}: ][!others?  other cgroups: " SECTIONS_NEIGHBOUR
	", ]{direct_ms+limit_ms+compaction_ms+throttle_ms:n} ms in {stretches:n} "
	"event{stretches:s}, {reclaimed_bytes:bytes} reclaimed\n]";

void text_report_reclaim(struct session_lines *s)
{
	if (section_table(s, &s->session->reclaim, &table))
		session_lines_put(s, &s->session->neighbours, neighbour);
}
