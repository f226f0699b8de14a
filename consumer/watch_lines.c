/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of watches: watch.start, watch.stop, the element of the `watches` method. */
#include "consumer/agent.h"
#include "consumer/watch.h"
#include "shared/clock.h"
#include "shared/macro.h"

static void write_rules(const struct watch *w, struct jsonw *json)
{
	jsonw_array(json, "rules");
	for (size_t i = 0; i < w->n_bindings; i++)
		jsonw_string(json, NULL, w->bindings[i].rule->name);
	jsonw_array_end(json);
}

void watch_say_start(const struct watch *w)
{
	struct agent *a = w->agent;
	const struct rule *rule = w->n_bindings ? w->bindings[0].rule : NULL;
	const struct event_about about = { rule, w->cgroup_id, UID_UNKNOWN, w->owner };
	struct line_subject subject;
	struct jsonw json;

	if (!event_budget_take(&a->budget, &about, LINE_WATCH_START))
		return;
	subject = event_log_subject(&a->log, rule, w->cgroup_id);

	line_begin(&a->lines, &json, "watch.start", &subject);
	jsonw_u64(&json, "slot", w->slot);
	jsonw_array(&json, "resources");
	for (int i = 0; i < RESOURCE_COUNT_; i++)
		if (w->pressure[i].fd >= 0)
			jsonw_string(&json, NULL, resource_name((enum resource)i));
	jsonw_array_end(&json);
	jsonw_string(&json, "scope", w->by_process ? "process" : "cgroup");
	pressure_write_start(w, &json);
	if (subject.cgroup)
		container_write(&subject.container, subject.cgroup, &json);
	sampler_write(&a->sampler, &json);
	write_rules(w, &json);
	line_end(&a->lines, &json);
}

void watch_say_stop(const struct watch *w, const char *reason)
{
	struct agent *a = w->agent;
	struct line_subject subject = {
		.rule = w->rule,
		.generation = w->set ? w->set->generation : 0,
		.cgroup = w->path,
		.cgroup_id = w->cgroup_id,
		.container = container_parse(w->path),
	};
	const struct event_about about = { w->rule, w->cgroup_id, UID_UNKNOWN, w->owner };
	struct jsonw json;

	if (!event_budget_take(&a->budget, &about, LINE_WATCH_STOP))
		return;

	line_begin(&a->lines, &json, "watch.stop", &subject);
	jsonw_u64(&json, "slot", w->slot);
	jsonw_string(&json, "reason", reason);
	jsonw_u64(&json, "lived_ms", (clock_mono_ns() - w->start_ns) / NSEC_PER_MSEC);
	jsonw_u64(&json, "sessions", w->sessions);
	line_end(&a->lines, &json);
}

void watch_write(const struct watch *w, struct jsonw *json)
{
	uint32_t processes = 0;
	struct process *p;
	uint64_t id;

	idmap_for_each (&w->agent->processes.by_id, i, id, p)
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
	pressure_write_watch(w, json);
	jsonw_object_end(json);
}
