/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/trigger_reason.h"

#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

const char *trigger_reason_name(enum trigger_kind kind)
{
	static const char *const names[] = {
		[TRIGGER_PRESSURE] = "pressure", [TRIGGER_REQUEST] = "request",
		[TRIGGER_EXEC] = "exec",	 [TRIGGER_QUIET] = "quiet",
		[TRIGGER_STUCK] = "stuck",	 [TRIGGER_OOM_KILL] = "oom_kill",
	};

	return names[kind];
}

enum trigger_cause trigger_reason_cause(const struct trigger_reason *reason)
{
	switch (reason->kind) {
	case TRIGGER_PRESSURE:
		return (enum trigger_cause)reason->when.resource;
	case TRIGGER_EXEC:
		return CAUSE_EXEC;
	case TRIGGER_QUIET:
		return CAUSE_QUIET;
	case TRIGGER_STUCK:
		return CAUSE_STUCK;
	case TRIGGER_OOM_KILL:
		return CAUSE_OOM_KILL;
	default:
		return CAUSE_REQUEST;
	}
}

const char *trigger_reason_cause_name(enum trigger_cause cause)
{
	switch (cause) {
	case CAUSE_EXEC:
		return trigger_reason_name(TRIGGER_EXEC);
	case CAUSE_QUIET:
		return trigger_reason_name(TRIGGER_QUIET);
	case CAUSE_STUCK:
		return trigger_reason_name(TRIGGER_STUCK);
	case CAUSE_OOM_KILL:
		return trigger_reason_name(TRIGGER_OOM_KILL);
	case CAUSE_REQUEST:
		return trigger_reason_name(TRIGGER_REQUEST);
	default:
		return trigger_reason_name(TRIGGER_PRESSURE);
	}
}

const char *trigger_reason_cause_resource(enum trigger_cause cause)
{
	return cause < CAUSE_REQUEST ? rules_resource_name((enum resource)cause) : NULL;
}

bool trigger_reason_is_stall(const struct trigger_reason *reason)
{
	return reason->kind == TRIGGER_PRESSURE || reason->kind == TRIGGER_QUIET ||
	       reason->kind == TRIGGER_STUCK;
}

bool trigger_reason_asks_why(const struct trigger_reason *reason)
{
	return trigger_reason_is_stall(reason) || reason->kind == TRIGGER_REQUEST;
}

bool trigger_reason_cools(const struct trigger_reason *reason)
{
	return reason->kind != TRIGGER_REQUEST || reason->text[0];
}

void trigger_reason_write(const struct trigger_reason *reason, struct jsonw *w)
{
	jsonw_object(w, "reason");
	jsonw_object(w, trigger_reason_name(reason->kind));
	switch (reason->kind) {
	case TRIGGER_PRESSURE:
		trigger_reason_write_threshold(reason, w);
		jsonw_u64(w, "window_ms", reason->when.window_ms);
		break;
	case TRIGGER_QUIET:
		trigger_reason_write_threshold(reason, w);
		jsonw_u64(w, "cpu_ms", reason->cpu_us / 1000);
		jsonw_u64(w, "mean_cpu_ms", reason->usual_us / 1000);
		jsonw_u64(w, "measured_ms", reason->measured_ms);
		jsonw_u64(w, "began_ms", reason->began_ms);
		jsonw_u64(w, "window_ms", reason->when.window_ms);
		break;
	case TRIGGER_STUCK:
		trigger_reason_write_threshold(reason, w);
		jsonw_u64(w, "threads", reason->stuck_threads);
		jsonw_u64(w, "of_threads", reason->all_threads);
		jsonw_string(w, "wait", reason->wait);
		jsonw_u64(w, "measured_ms", reason->measured_ms);
		break;
	case TRIGGER_REQUEST:
		jsonw_u64(w, "uid", reason->uid);
		jsonw_u64(w, "pid", reason->pid);
		if (reason->text[0])
			jsonw_string(w, "text", reason->text);
		break;
	case TRIGGER_EXEC:
	case TRIGGER_OOM_KILL:
		jsonw_u64(w, "pid", reason->pid);
		jsonw_string(w, "comm", reason->comm);
		break;
	}
	jsonw_object_end(w);
	jsonw_object_end(w);
}

void trigger_reason_write_threshold(const struct trigger_reason *reason, struct jsonw *w)
{
	if (reason->kind == TRIGGER_QUIET)
		jsonw_milli(w, "share_pct",
			    (int64_t)(reason->cpu_us * 100000 / MAX(reason->usual_us, 1ULL)));
	if (reason->kind == TRIGGER_STUCK)
		jsonw_milli(
			w, "share_pct",
			(int64_t)(reason->stuck_threads * 100000 / MAX(reason->all_threads, 1ULL)));
	if (reason->kind != TRIGGER_PRESSURE)
		return;
	jsonw_string(w, "resource", rules_resource_name(reason->when.resource));
	jsonw_string(w, "kind", reason->when.full ? "full" : "some");
	jsonw_u64(w, "stall_ms", reason->stall_ms);
}
