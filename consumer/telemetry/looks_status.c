/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/telemetry/looks_status.h"

#include "consumer/sampling/looks.h"
#include "consumer/sampling/wait_recorder.h"
#include "shared/json/jsonw.h"

void looks_status_write(const struct telemetry *t, struct jsonw *w)
{
	const struct looks_recorded *recorded = &t->looks->recorded;

	jsonw_object(w, "looks");
	jsonw_u64(w, "every_ms", LOOKS_RECORD_EVERY_NS / NSEC_PER_MSEC);
	jsonw_milli(w, "budget_pct", LOOKS_RECORD_BUDGET_MILLI * 100);
	jsonw_u64(w, "passes", recorded->passes);
	jsonw_u64(w, "skipped", recorded->skipped);
	jsonw_u64(w, "cut", recorded->cut);
	jsonw_milli(w, "cpu_ms", (int64_t)(recorded->cpu_ns / 1000));
	jsonw_u64(w, "threads", t->waits->threads.count);
	jsonw_u64(w, "bytes", wait_recorder_bytes(t->waits));
	jsonw_u64(w, "evicted", t->waits->evicted);
	jsonw_object_end(w);
}
