/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/methods.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/agent.h"
#include "consumer/agent_events.h"
#include "consumer/apply.h"
#include "consumer/broker_status.h"
#include "consumer/discover.h"
#include "consumer/following.h"
#include "consumer/owners_status.h"
#include "consumer/pressure_status.h"
#include "consumer/requests.h"
#include "consumer/sampler_status.h"
#include "consumer/session_events.h"
#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/io.h"
#include "shared/macro.h"

#define PREVIEW_MAX 1000

int methods_fail(struct control_error *error, enum control_code code, const char *format, ...)
{
	va_list args;

	error->code = code;
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return -1;
}

static void write_ring(struct jsonw *w, const char *name, const struct ring *ring)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "name", name);
	jsonw_u64(w, "size_bytes", ring->size);
	jsonw_u64(w, "used_bytes", ring_used(ring));
	jsonw_object_end(w);
}

static void write_output(const struct agent *a, struct jsonw *w)
{
	static const char *const kinds[] = {
		[OUTPUT_STDOUT] = "stdout",
		[OUTPUT_FILE] = "file",
		[OUTPUT_FIFO] = "fifo",
		[OUTPUT_UNIX] = "unix",
	};
	struct output_stats o;

	output_stats(a->output, &o);
	jsonw_object(w, "output");
	jsonw_string(w, "kind", kinds[output_kind(a->output)]);
	jsonw_u64(w, "lines", o.lines);
	jsonw_u64(w, "bytes", o.bytes);
	jsonw_u64(w, "dropped_lines", o.dropped_lines);
	jsonw_u64(w, "write_errors", o.write_errors);
	jsonw_string(w, "last_error", o.last_error ? strerrorname_np(o.last_error) : NULL);
	jsonw_u64(w, "queued_bytes", o.queued_bytes);
	jsonw_u64(w, "queue_bytes", o.queue_bytes);
	jsonw_object_end(w);
}

static void write_control(const struct agent *a, struct jsonw *w)
{
	struct control_stats c;

	control_stats(a->control, &c);
	jsonw_object(w, "control");
	jsonw_u64(w, "clients", c.clients);
	jsonw_u64(w, "requests", c.requests);
	jsonw_u64(w, "errors", c.errors);
	jsonw_u64(w, "forbidden", c.forbidden);
	jsonw_object_end(w);
}

static void write_memory(const struct agent *a, struct jsonw *w)
{
	struct symbols_stats s;

	symbols_stats(a->symbols, &s);
	jsonw_object(w, "memory");
	jsonw_u64(w, "recorder_bytes", a->recorder.bytes);
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

static int status(void *context, const struct control_peer *peer, const struct json_node *params,
		  struct jsonw *w, struct control_error *error)
{
	struct agent *a = context;

	jsonw_object(w, NULL);
	jsonw_string(w, "version", TROCAR_VERSION);
	jsonw_u64(w, "pid", (uint64_t)getpid());
	jsonw_u64(w, "uptime_ms", (clock_mono_ns() - a->start_ns) / NSEC_PER_MSEC);
	agent_events_write_self(&a->telemetry, w);
	jsonw_u64(w, "generation", a->active.set->generation);
	jsonw_u64(w, "rules", a->active.set->rules->count);
	jsonw_u64(w, "watches", a->watches.count);
	jsonw_u64(w, "processes", a->processes.by_id.count - a->processes.gone);
	jsonw_u64(w, "sessions_running", a->sessions.count);
	jsonw_u64(w, "sessions_total", a->sessions.total);
	cgroups_unseen_write(&a->unseen, w);
	scope_write(&a->scope, w);
	pressure_status_write(&a->pressure, w);
	sampler_status_write(&a->sampler, w);
	broker_status_write(a->link, a->files, &a->pins, w);
	process_unwind_write_status(&a->unwind, w);
	jsonw_array(w, "rings");
	write_ring(w, "samples", &a->pins.samples);
	write_ring(w, "events", &a->pins.events);
	write_ring(w, "errors", &a->pins.errors);
	jsonw_array_end(w);
	agent_events_write_totals(&a->telemetry, w);
	owners_status_write(a, w);
	write_output(a, w);
	write_control(a, w);
	write_memory(a, w);
	jsonw_object_end(w);
	return 0;
}

static int rules_get(void *context, const struct control_peer *peer, const struct json_node *params,
		     struct jsonw *w, struct control_error *error)
{
	struct agent *a = context;

	jsonw_object(w, NULL);
	jsonw_u64(w, "generation", a->active.set->generation);
	jsonw_string(w, "source", a->active.set->source);
	rules_write(a->active.set->rules, w, "rules");
	jsonw_object_end(w);
	return 0;
}

/* Parses params.text; faults go into error->data. */
static int parse_text(const struct json_node *params, struct rules **ret_rules,
		      struct rules_faults *warnings, struct rules_faults *faults,
		      struct control_error *error)
{
	const struct json_node *text = json_node_get(params, "text");
	int r;

	if (!json_node_is(text, JSON_STRING))
		return methods_fail(error, CONTROL_BAD_PARAMS,
				    "params.text: want the text of a rules file as a string");
	r = rules_parse(text->text, text->bytes, ret_rules, faults, warnings);
	if (r == 0)
		return 0;
	if (r != -EINVAL)
		return methods_fail(error, CONTROL_INTERNAL, "%s", strerror(-r));
	jsonw_object(&error->data, NULL);
	jsonw_u64(&error->data, "fault_count", faults->count);
	rules_faults_write(faults, &error->data, "faults");
	jsonw_object_end(&error->data);
	return methods_fail(error, CONTROL_REJECTED,
			    "%zu faults: nothing was applied, the running rules stay",
			    faults->count);
}

/* The tries that are not in force are filled with the set, the processes listed, the tries emptied.
 */
static int preview(struct agent *a, struct rules *rules, struct jsonw *w,
		   struct discover_left *ret_left)
{
	struct ruleset *set;
	int r;

	r = ruleset_new(rules, a->active.generation, "check", &set);
	if (r < 0) {
		rules_free(rules);
		return r;
	}
	r = ruleset_fill(&a->pins, !a->pins.control->active, set);
	if (r == 0)
		r = discover_preview(a, rules, PREVIEW_MAX, w, ret_left);
	ruleset_clear(&a->pins, !a->pins.control->active);
	ruleset_unref(set);
	return r;
}

static int rules_check(void *context, const struct control_peer *peer,
		       const struct json_node *params, struct jsonw *w, struct control_error *error)
{
	_cleanup_(rules_faults_done) struct rules_faults faults, warnings;
	struct agent *a = context;
	struct rules *rules = NULL;
	struct discover_left left = {};
	int r;

	rules_faults_init(&faults);
	rules_faults_init(&warnings);
	if (parse_text(params, &rules, &warnings, &faults, error) < 0 || !rules)
		return -1;
	jsonw_object(w, NULL);
	jsonw_bool(w, "ok", true);
	jsonw_u64(w, "count", rules->count);
	rules_faults_write(&warnings, w, "warnings");
	jsonw_array(w, "matches");
	r = preview(a, rules, w, &left);
	jsonw_array_end(w);
	jsonw_u64(w, "matches_omitted", left.omitted);
	jsonw_u64(w, "cgroups_unreadable", left.unreadable);
	jsonw_object_end(w);
	return r < 0 ? methods_fail(error, CONTROL_INTERNAL, "listing the matching processes: %s",
				    strerror(-r))
		     : 0;
}

static int rules_set(void *context, const struct control_peer *peer, const struct json_node *params,
		     struct jsonw *w, struct control_error *error)
{
	_cleanup_(rules_faults_done) struct rules_faults faults, warnings;
	struct agent *a = context;
	struct applied applied = {};
	struct rules *rules = NULL;
	int r;

	rules_faults_init(&faults);
	rules_faults_init(&warnings);
	if (parse_text(params, &rules, &warnings, &faults, error) < 0) {
		if (error->code == CONTROL_REJECTED)
			apply_say_rejected(a, "socket", peer, &faults);
		return -1;
	}
	r = apply_rules(a, rules, "socket", peer, &warnings, &applied);
	if (r < 0)
		return methods_fail(error, CONTROL_INTERNAL,
				    "the rules do not fit the kernel's tables: %s; the running "
				    "rules stay",
				    strerror(-r));
	jsonw_object(w, NULL);
	jsonw_u64(w, "generation", applied.generation);
	jsonw_u64(w, "count", applied.count);
	rules_faults_write(&warnings, w, "warnings");
	jsonw_u64(w, "unchanged_watches", applied.unchanged_watches);
	jsonw_object_end(w);
	return 0;
}

static int watches(void *context, const struct control_peer *peer, const struct json_node *params,
		   struct jsonw *w, struct control_error *error)
{
	struct agent *a = context;

	jsonw_array(w, NULL);
	for (uint32_t i = 0; i < a->pins.abi.slots; i++)
		if (a->watches.by_slot[i])
			watch_events_write(&a->watch_events, a->watches.by_slot[i], w);
	jsonw_array_end(w);
	return 0;
}

static int sessions(void *context, const struct control_peer *peer, const struct json_node *params,
		    struct jsonw *w, struct control_error *error)
{
	struct agent *a = context;

	session_events_write_list(&a->sessions, w);
	return 0;
}

const struct control_method methods_table[] = {
	{ "status", false, status },
	{ "rules.get", false, rules_get },
	{ "rules.check", false, rules_check },
	{ "rules.set", true, rules_set },
	{ "watches", false, watches },
	{ "sessions", false, sessions },
	{ "session.start", true, requests_session_start },
	{ "subscribe", true, following_subscribe },
	{ "lines", true, following_lines },
	{},
};
