/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/watch/trigger_events.h"

void trigger_events_held(const struct event_log *log, const struct trigger *trigger,
			 const struct trigger_held *held, uint64_t repeats)
{
	struct event_subject subject =
		event_log_subject(log, trigger->rule, trigger->watch->cgroup_id);
	struct jsonw w;

	event_line_begin(log->lines, &w, "trigger.held", &subject);
	jsonw_string(&w, "trigger", trigger_reason_name(trigger->reason.kind));
	jsonw_string(&w, "reason", held->reason);
	jsonw_u64(&w, "retry_ms", held->retry_ms);
	trigger_reason_write_threshold(&trigger->reason, &w);
	if (repeats)
		jsonw_u64(&w, "repeats", repeats);
	event_line_end(log->lines, &w);
}

void trigger_events_pressure(const struct event_log *log, const struct trigger *trigger,
			     uint64_t session)
{
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
	psi_write(&reason->before, &w, "before");
	psi_write(&reason->now, &w, "now");
	event_line_end(log->lines, &w);
}
