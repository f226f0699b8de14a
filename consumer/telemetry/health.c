/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/telemetry/health.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/io/loop.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/sampling/wait_recorder.h"
#include "consumer/telemetry/telemetry.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

uint64_t health_resident_bytes(void)
{
	_cleanup_free_ char *text = NULL;
	const char *second = NULL;
	uint64_t pages;
	size_t bytes;

	if (io_read_file(-1, "/proc/self/statm", 256, &text, &bytes) == 0)
		second = strchr(text, ' ');
	pages = second ? strtoull(second, NULL, 10) : 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void health_write_longest(const struct loop_longest *longest, struct jsonw *w)
{
	jsonw_u64(w, "longest_turn_ms", longest->turn_ns / NSEC_PER_MSEC);
	if (longest->own_known)
		jsonw_u64(w, "longest_turn_own_ms", longest->own_ns / NSEC_PER_MSEC);
}

static const char *const ring_names[HEALTH_RINGS] = { "samples", "events", "errors" };

static const struct ring *ring_at(const struct pinned_maps *pins, int i)
{
	const struct ring *rings[HEALTH_RINGS] = { &pins->samples, &pins->events, &pins->errors };

	return rings[i];
}

void health_init(struct health *h, const struct telemetry *telemetry, uint32_t seconds)
{
	*h = (struct health){ .telemetry = telemetry, .every_ns = seconds * NSEC_PER_SEC };
}

void health_fill(struct health *h)
{
	for (int i = 0; i < HEALTH_RINGS; i++)
		h->peak_bytes[i] =
			MAX(h->peak_bytes[i], (uint64_t)ring_used(ring_at(h->telemetry->pins, i)));
}

void health_take(struct health *h, struct watch *w)
{
	struct slot_counters *ticks = &h->ticks, now;

	if (pinned_maps_slot(w->all->pins, w->slot, &now) < 0)
		return;
	ticks->attempted += now.attempted - w->counted.attempted;
	ticks->emitted += now.emitted - w->counted.emitted;
	for (size_t i = 0; i < ARRAY_SIZE(now.lost); i++)
		ticks->lost[i] += now.lost[i] - w->counted.lost[i];
	w->counted = now;
}

static struct health_losses count_losses(const struct telemetry *t,
					 const struct output_queue_stats *output)
{
	struct totals kernel = {};

	pinned_maps_totals(t->pins, &kernel);
	return (struct health_losses){
		.held = t->recorder->evicted + t->waits->evicted,
		.lines = output->dropped_lines,
		.left_out = t->budget->lines.left_out,
		.events = kernel.events_lost,
		.limited = kernel.events_limited,
		.over_quota = kernel.events_over_quota,
		.shed = kernel.events_shed,
		.errors = kernel.errors_lost,
		.targets =
			kernel.targets_full + t->counts->processes_full + t->counts->matches_full,
		.records = t->counts->bad_records + t->pins->samples.bad + t->pins->events.bad +
			   t->pins->errors.bad,
	};
}

/* Begins the period of the next line. */
static void begin_line(struct health *h, uint64_t now_ns)
{
	const struct telemetry *t = h->telemetry;
	struct output_queue_stats output;

	output_queue_stats(t->output, &output);
	(void)loop_longest_turn(t->loop);
	*h = (struct health){
		.telemetry = t,
		.every_ns = h->every_ns,
		.said_ns = now_ns,
		.cpu_ns = clock_cpu_ns(),
		.lines = output.lines,
		.losses = count_losses(t, &output),
	};
}

static void write_losses(const struct health *h, const struct health_losses *now, struct jsonw *w)
{
	jsonw_object(w, "lost");
	for (int i = 0; i < SLOT_LOST_REASONS; i++)
		if (i != DROP_HELD)
			jsonw_u64_nonzero(w, ledger_drop_name((enum drop)i), h->ticks.lost[i]);
	jsonw_u64_nonzero(w, ledger_drop_name(DROP_HELD), now->held - h->losses.held);
	jsonw_u64_nonzero(w, "lines", now->lines - h->losses.lines);
	jsonw_u64_nonzero(w, "events_full", now->events - h->losses.events);
	jsonw_u64_nonzero(w, "events_limited", now->limited - h->losses.limited);
	jsonw_u64_nonzero(w, "events_over_quota", now->over_quota - h->losses.over_quota);
	jsonw_u64_nonzero(w, "events_shed", now->shed - h->losses.shed);
	jsonw_u64_nonzero(w, "lines_left_out", now->left_out - h->losses.left_out);
	jsonw_u64_nonzero(w, "errors_full", now->errors - h->losses.errors);
	jsonw_u64_nonzero(w, "targets_full", now->targets - h->losses.targets);
	jsonw_u64_nonzero(w, "bad_record", now->records - h->losses.records);
	jsonw_object_end(w);
}

static void write_rings(const struct health *h, struct jsonw *w)
{
	jsonw_array(w, "rings");
	for (int i = 0; i < HEALTH_RINGS; i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "name", ring_names[i]);
		jsonw_u64(w, "size_bytes", ring_at(h->telemetry->pins, i)->size);
		jsonw_u64(w, "peak_bytes", h->peak_bytes[i]);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

static void say_line(const struct health *h, uint64_t now_ns)
{
	const struct telemetry *t = h->telemetry;
	uint64_t interval_ns = MAX(now_ns - h->said_ns, (uint64_t)1),
		 cpu_ns = clock_cpu_ns() - h->cpu_ns;
	struct loop_longest longest = loop_longest_turn(t->loop);
	struct health_losses losses;
	struct output_queue_stats output;
	struct jsonw w;

	output_queue_stats(t->output, &output);
	losses = count_losses(t, &output);
	event_line_begin(t->log->lines, &w, "health", NULL);
	jsonw_u64(&w, "interval_ms", interval_ns / NSEC_PER_MSEC);
	jsonw_u64(&w, "cpu_us", cpu_ns / 1000);
	jsonw_milli(&w, "cpu_pct", (int64_t)(cpu_ns * 100000 / interval_ns));
	health_write_longest(&longest, &w);
	jsonw_u64(&w, "resident_bytes", health_resident_bytes());
	jsonw_u64(&w, "watches", t->watches->count);
	jsonw_u64(&w, "processes", t->processes->by_id.count - t->processes->gone);
	jsonw_u64(&w, "sessions_running", t->sessions->count);
	jsonw_u64(&w, "sessions_queued", report_thread_queued(t->reporter));
	jsonw_u64(&w, "attempted", h->ticks.attempted);
	jsonw_u64(&w, "emitted", h->ticks.emitted);
	write_losses(h, &losses, &w);
	write_rings(h, &w);
	jsonw_object(&w, "output");
	jsonw_u64(&w, "lines", output.lines - h->lines);
	jsonw_u64(&w, "queued_bytes", output.queued_bytes);
	jsonw_u64(&w, "queue_bytes", output.queue_bytes);
	jsonw_object_end(&w);
	event_line_end(t->log->lines, &w);
}

/* Returns whether anything was lost since the last line. */
static bool some_lost(const struct health *h)
{
	const struct telemetry *t = h->telemetry;
	struct health_losses losses;
	struct output_queue_stats output;

	for (int i = 0; i < SLOT_LOST_REASONS; i++)
		if (h->ticks.lost[i])
			return true;
	output_queue_stats(t->output, &output);
	losses = count_losses(t, &output);
	return memcmp(&losses, &h->losses, sizeof(losses)) != 0;
}

void health_check(struct health *h, uint64_t now_ns)
{
	const struct watches *watches = h->telemetry->watches;

	if (!watches->count || !h->every_ns) {
		/*
		 * The last watch has ended within a period: write a line only if something was
		 * lost.
		 */
		if (h->said_ns && h->every_ns && some_lost(h))
			say_line(h, now_ns);
		h->said_ns = 0;
	} else if (!h->said_ns) {
		begin_line(h, now_ns);
	} else if (now_ns - h->said_ns >= h->every_ns) {
		for (uint32_t i = 0; i < h->telemetry->pins->abi.slots; i++)
			if (watches->by_slot[i])
				health_take(h, watches->by_slot[i]);
		say_line(h, now_ns);
		begin_line(h, now_ns);
	}
}
