/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/telemetry/watch_events.h"

#include "consumer/conditions/pressure_status.h"
#include "consumer/conditions/quiet_follow.h"
#include "consumer/conditions/stuck_follow.h"
#include "consumer/sampling/sampler_status.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static void write_rules(const struct watch *w, struct jsonw *json)
{
	jsonw_array(json, "rules");
	for (size_t i = 0; i < w->n_bindings; i++)
		jsonw_string(json, NULL, w->bindings[i].rule->name);
	jsonw_array_end(json);
}

void watch_events_start(const struct watch_events *e, const struct watch *w)
{
	const struct event_log *log = w->all->log;
	const struct rule *rule = w->n_bindings ? w->bindings[0].rule : NULL;
	const struct event_about about = { rule, w->cgroup_id, UID_UNKNOWN, w->owner };
	struct event_subject subject;
	struct jsonw json;

	if (!event_budget_take(e->budget, &about, LINE_WATCH_START))
		return;
	subject = event_log_subject(log, rule, w->cgroup_id);

	event_line_begin(log->lines, &json, "watch.start", &subject);
	jsonw_u64(&json, "slot", w->slot);
	jsonw_array(&json, "resources");
	for (int i = 0; i < RESOURCE_COUNT_; i++)
		if (pressure_follow_of(e->pressure, w)->file[i].fd >= 0)
			jsonw_string(&json, NULL, rules_resource_name((enum resource)i));
	jsonw_array_end(&json);
	jsonw_string(&json, "scope", w->by_process ? "process" : "cgroup");
	pressure_status_write_start(e->pressure, w, &json);
	quiet_follow_write(pressure_follow_of(e->pressure, w)->quiet, w, false, &json);
	stuck_follow_write(e->pressure->waits, w, &json);
	if (subject.cgroup)
		container_write(&subject.container, subject.cgroup, &json);
	sampler_status_write(w->all->sampler, &json);
	write_rules(w, &json);
	event_line_end(log->lines, &json);
}

void watch_events_stop(const struct watch_events *e, const struct watch *w, const char *reason)
{
	const struct event_log *log = w->all->log;
	struct event_subject subject = {
		.rule = w->rule,
		.generation = w->set ? w->set->generation : 0,
		.cgroup = w->path,
		.cgroup_id = w->cgroup_id,
		.container = container_parse(w->path),
	};
	const struct event_about about = { w->rule, w->cgroup_id, UID_UNKNOWN, w->owner };
	struct jsonw json;

	if (!event_budget_take(e->budget, &about, LINE_WATCH_STOP))
		return;

	event_line_begin(log->lines, &json, "watch.stop", &subject);
	jsonw_u64(&json, "slot", w->slot);
	jsonw_string(&json, "reason", reason);
	jsonw_u64(&json, "lived_ms", (clock_mono_ns() - w->start_ns) / NSEC_PER_MSEC);
	jsonw_u64(&json, "sessions", w->sessions);
	event_line_end(log->lines, &json);
}

void watch_events_write(const struct watch_events *e, const struct watch *w, struct jsonw *json)
{
	uint32_t processes = 0;
	struct process *p;
	uint64_t id;

	idmap_for_each (&w->all->processes->by_id, i, id, p)
		if (p->watch == w)
			processes++;
	jsonw_object(json, NULL);
	jsonw_u64(json, "slot", w->slot);
	jsonw_string(json, "cgroup", w->path);
	jsonw_u64(json, "cgroup_id", w->cgroup_id);
	jsonw_string(json, "scope", w->by_process ? "process" : "cgroup");
	write_rules(w, json);
	jsonw_string(json, "state", w->session ? "capture" : "recorder");
	jsonw_u64(json, "processes", processes);
	jsonw_u64(json, "age_ms", (clock_mono_ns() - w->start_ns) / NSEC_PER_MSEC);
	jsonw_u64(json, "sessions", w->sessions);
	pressure_status_write_watch(e->pressure, w, json);
	quiet_follow_write(pressure_follow_of(e->pressure, w)->quiet, w, true, json);
	stuck_follow_write(e->pressure->waits, w, json);
	jsonw_object_end(json);
}
