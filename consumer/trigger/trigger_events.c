/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/trigger/trigger_events.h"
#include "shared/json/jsonw.h"

void trigger_events_held(const struct event_log *log, const struct cooldown *e, bool sums)
{
	/* The cgroup may be gone by now: take the path from the entry. */
	struct event_subject subject = {
		.rule = e->rule,
		.generation = log->active->set ? log->active->set->generation : 0,
		.cgroup = e->cgroup,
		.cgroup_id = e->cgroup_id,
		.container = container_parse(e->cgroup),
		.session = e->held_by.session,
	};
	struct jsonw w;

	event_line_begin(log->lines, &w, "trigger.held", &subject);
	jsonw_string(&w, "trigger", trigger_reason_name(e->last.kind));
	jsonw_string(&w, "reason", e->held_by.reason);
	jsonw_u64(&w, "retry_ms", e->held_by.retry_ms);
	trigger_reason_write_threshold(&e->last, &w);
	if (e->last.text[0])
		jsonw_string(&w, "text", e->last.text);
	if (sums) {
		jsonw_u64(&w, "repeats", e->held.count);
		held_triggers_write_stall(&e->held, e->cause, &w);
	}
	event_line_end(log->lines, &w);
}

void trigger_events_pressure(const struct event_log *log, const struct trigger *trigger,
			     uint64_t session, uint64_t broken)
{
	char text[SESSION_TEXT_BYTES];
	const struct trigger_reason *reason = &trigger->reason;
	struct event_subject subject =
		event_log_subject(log, trigger->rule, trigger->watch->cgroup_id);
	struct jsonw w;

	subject.session = session;
	event_line_begin(log->lines, &w, "pressure", &subject);
	trigger_reason_write_threshold(reason, &w);
	jsonw_u64(&w, "threshold_ms", reason->when.stall_ms);
	jsonw_u64(&w, "window_ms", reason->when.window_ms);
	jsonw_u64(&w, "measured_ms", reason->measured_ms);
	jsonw_string(&w, "by", reason->by);
	jsonw_string(&w, "scope", trigger->watch->root ? "system" : "cgroup");
	if (broken) {
		event_line_session_text(broken, text);
		jsonw_string(&w, "broke_cooldown_of", text);
	}
	psi_write(&reason->before, &w, "before");
	psi_write(&reason->now, &w, "now");
	event_line_end(log->lines, &w);
}
