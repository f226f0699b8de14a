/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/methods/method_status.h"

#include <string.h>
#include <unistd.h>

#include "consumer/conditions/pressure_status.h"
#include "consumer/discovery/rules_apply.h"
#include "consumer/methods/methods.h"
#include "consumer/sampling/sampler_status.h"
#include "consumer/telemetry/agent_events.h"
#include "consumer/telemetry/broker_status.h"
#include "consumer/telemetry/health.h"
#include "consumer/telemetry/looks_status.h"
#include "consumer/telemetry/owners_status.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static void write_ring(struct jsonw *w, const char *name, const struct ring *ring)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "name", name);
	jsonw_u64(w, "size_bytes", ring->size);
	jsonw_u64(w, "used_bytes", ring_used(ring));
	jsonw_object_end(w);
}

static void write_output(const struct methods *m, struct jsonw *w)
{
	static const char *const kinds[] = {
		[OUTPUT_STDOUT] = "stdout",
		[OUTPUT_FILE] = "file",
		[OUTPUT_FIFO] = "fifo",
		[OUTPUT_UNIX] = "unix",
	};
	struct output_queue_stats o;

	output_queue_stats(m->t->output, &o);
	jsonw_object(w, "output");
	jsonw_string(w, "kind", kinds[output_queue_kind(m->t->output)]);
	jsonw_u64(w, "lines", o.lines);
	jsonw_u64(w, "bytes", o.bytes);
	jsonw_u64(w, "dropped_lines", o.dropped_lines);
	jsonw_u64(w, "write_errors", o.write_errors);
	jsonw_string(w, "last_error", o.last_error ? strerrorname_np(o.last_error) : NULL);
	jsonw_u64(w, "lost_files", o.lost_files);
	jsonw_u64(w, "queued_bytes", o.queued_bytes);
	jsonw_u64(w, "queue_bytes", o.queue_bytes);
	jsonw_object_end(w);
}

static void write_control(const struct methods *m, struct jsonw *w)
{
	struct control_stats c;

	control_stats(m->control, &c);
	jsonw_object(w, "control");
	jsonw_u64(w, "clients", c.clients);
	jsonw_u64(w, "requests", c.requests);
	jsonw_u64(w, "errors", c.errors);
	jsonw_u64(w, "forbidden", c.forbidden);
	jsonw_object_end(w);
}

static void write_memory(const struct methods *m, struct jsonw *w)
{
	struct symbols_stats s;

	symbols_stats(m->symbols, &s);
	jsonw_object(w, "memory");
	jsonw_u64(w, "recorder_bytes", m->t->recorder->bytes);
	jsonw_u64(w, "symbols_bytes", s.bytes);
	jsonw_u64(w, "resident_bytes", health_resident_bytes());
	jsonw_object_end(w);
	jsonw_object(w, "symbols");
	jsonw_u64(w, "modules", s.modules);
	jsonw_u64(w, "files_read", s.files_read);
	jsonw_u64(w, "files_borrowed", s.files_borrowed);
	jsonw_u64(w, "lookups", s.lookups);
	jsonw_u64(w, "unnamed", s.unnamed);
	jsonw_object_end(w);
}

int method_status(void *context, const struct control_peer *peer, const struct json_node *params,
		  struct jsonw *w, struct control_error *error)
{
	struct methods *m = context;
	struct loop_longest longest = loop_longest_ever(m->t->loop);

	jsonw_object(w, NULL);
	jsonw_string(w, "version", TROCAR_VERSION);
	jsonw_u64(w, "pid", (uint64_t)getpid());
	jsonw_u64(w, "uptime_ms", (clock_mono_ns() - m->t->start_ns) / NSEC_PER_MSEC);
	health_write_longest(&longest, w);
	agent_events_write_self(m->t, w);
	jsonw_u64(w, "generation", m->d->active->set->generation);
	jsonw_u64(w, "rules", m->d->active->set->rules->count);
	jsonw_u64(w, "watches", m->t->watches->count);
	jsonw_u64(w, "processes", m->t->processes->by_id.count - m->t->processes->gone);
	jsonw_u64(w, "sessions_running", m->t->sessions->count);
	jsonw_u64(w, "sessions_total", m->t->sessions->total);
	rules_apply_write_refused(m->d, w);
	cgroups_unseen_write(m->d->unseen, w);
	scope_write(m->t->scope, w);
	pressure_status_write(m->t->pressure, w);
	sampler_status_write(m->t->sampler, w);
	looks_status_write(m->t, w);
	broker_status_write(m->t->broker, m->files, m->t->pins, w);
	process_unwind_write_status(m->d->unwind, w);
	mappings_queue_write_status(m->d->queue, w);
	jsonw_array(w, "rings");
	write_ring(w, "samples", &m->t->pins->samples);
	write_ring(w, "events", &m->t->pins->events);
	write_ring(w, "errors", &m->t->pins->errors);
	jsonw_array_end(w);
	agent_events_write_totals(m->t, w);
	owners_status_write(m->d, w);
	write_output(m, w);
	write_control(m, w);
	write_memory(m, w);
	jsonw_object_end(w);
	return 0;
}
