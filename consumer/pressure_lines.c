/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of pressure: the line "pressure", how a watch is followed, the counts of status. */
#include <stdio.h>

#include "consumer/agent.h"
#include "consumer/closer.h"
#include "shared/macro.h"

#define REASON_BYTES 256

static const char *const by_names[] = {
	[PRESSURE_BY_TRIGGER] = "trigger",
	[PRESSURE_BY_SCAN] = "scan",
	[PRESSURE_BY_READING] = "reading",
};

void pressure_say(struct watch *w, const struct rule *rule, const struct trigger_reason *reason,
		  const struct session *session, enum pressure_by by)
{
	struct agent *a = w->agent;
	struct line_subject subject = event_log_subject(&a->log, rule, w->cgroup_id);
	struct jsonw json;

	subject.session = session ? session->id : 0;
	line_begin(&a->lines, &json, "pressure", &subject);
	jsonw_string(&json, "resource", resource_name(reason->when->resource));
	jsonw_string(&json, "kind", reason->when->full ? "full" : "some");
	jsonw_u64(&json, "stall_ms", reason->stall_ms);
	jsonw_u64(&json, "threshold_ms", reason->when->stall_ms);
	jsonw_u64(&json, "window_ms", reason->when->window_ms);
	jsonw_u64(&json, "measured_ms", reason->measured_ms);
	jsonw_string(&json, "by", by_names[by]);
	jsonw_string(&json, "scope", w->root ? "system" : "cgroup");
	psi_write(&reason->before, &json, "before");
	psi_write(&reason->now, &json, "now");
	line_end(&a->lines, &json);
}

static const char *way_name(uint64_t by_trigger, uint64_t by_scan)
{
	if (by_trigger && by_scan)
		return "both";
	return by_trigger ? "trigger" : by_scan ? "scan" : "none";
}

/* Why the first threshold that the scan follows is not followed by a trigger. */
static const char *first_why(const struct watch *w, enum resource resource)
{
	for (const struct threshold *t = w->thresholds; t; t = t->next)
		if (t->resource == resource && t->way != THRESHOLD_TRIGGER)
			return t->why;
	return "";
}

static void write_resource(const struct watch *w, enum resource resource, struct jsonw *json)
{
	const struct watch_pressure *p = &w->pressure[resource];
	const char *pace = trigger_pace(w->agent->pressure.triggers.power);
	char both[REASON_BYTES];
	const char *reason = pace;

	jsonw_string(json, "by", p->fd < 0 ? "none" : way_name(p->by_trigger, p->by_scan));
	if (p->by_scan)
		reason = first_why(w, resource);
	if (p->by_scan && p->by_trigger) {
		snprintf(both, sizeof(both), "%u of %u thresholds by scan: %s", p->by_scan,
			 p->by_scan + p->by_trigger, reason);
		reason = both;
	}
	jsonw_string(json, "reason", p->fd < 0 ? "its pressure file cannot be read" : reason);
}

static bool follows(const struct watch *w, int resource)
{
	return w->pressure[resource].by_trigger || w->pressure[resource].by_scan;
}

/* Of all resources that can be read. */
static void count(const struct watch *w, uint64_t *ret_by_trigger, uint64_t *ret_by_scan)
{
	*ret_by_trigger = *ret_by_scan = 0;
	for (int i = 0; i < RESOURCE_COUNT_; i++)
		if (w->pressure[i].fd >= 0) {
			*ret_by_trigger += w->pressure[i].by_trigger;
			*ret_by_scan += w->pressure[i].by_scan;
		}
}

static const char *follow_reason(const struct watch *w, uint64_t by_trigger, uint64_t by_scan)
{
	if (!by_trigger && !by_scan)
		return "no rule here has a threshold on a pressure file that can be read";
	for (int i = 0; by_scan && i < RESOURCE_COUNT_; i++)
		if (w->pressure[i].by_scan && w->pressure[i].fd >= 0)
			return first_why(w, (enum resource)i);
	return "the broker opens the pressure files, the kernel tells when a threshold is crossed";
}

void pressure_write_start(const struct watch *w, struct jsonw *json)
{
	const struct agent *a = w->agent;
	uint64_t by_trigger, by_scan;
	const char *reason;

	count(w, &by_trigger, &by_scan);
	jsonw_string(json, "follow", way_name(by_trigger, by_scan));
	jsonw_string(json, "follow_reason", follow_reason(w, by_trigger, by_scan));
	jsonw_object(json, "pressure");
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		if (!follows(w, i))
			continue;
		jsonw_object(json, resource_name((enum resource)i));
		write_resource(w, (enum resource)i, json);
		jsonw_object_end(json);
	}
	jsonw_object_end(json);
	if (!by_scan)
		return;
	jsonw_u64(json, "scan_ms", a->pressure.every_ns / NSEC_PER_MSEC);
	jsonw_string(json, "sleep", pressure_sleep(a, &reason));
	jsonw_string(json, "sleep_reason", reason);
}

void pressure_write_watch(const struct watch *w, struct jsonw *json)
{
	jsonw_object(json, "pressure");
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		struct psi psi;

		if (!follows(w, i))
			continue;
		jsonw_object(json, resource_name((enum resource)i));
		write_resource(w, (enum resource)i, json);
		if (w->pressure[i].fd >= 0 && psi_read(w->pressure[i].fd, &psi) == 0) {
			jsonw_u64(json, "some_total_us", psi.some.total_us);
			if (psi.has_full)
				jsonw_u64(json, "full_total_us", psi.full.total_us);
		}
		jsonw_object_end(json);
	}
	jsonw_object_end(json);
}

/* What all watches together have. */
struct sums {
	uint64_t files, waiting, scanned, bytes;
};

static void add_watch(const struct watch *w, struct sums *sums)
{
	for (const struct threshold *t = w->thresholds; t; t = t->next) {
		sums->bytes += sizeof(*t);
		sums->waiting += t->way == THRESHOLD_WAITING;
		sums->scanned += t->way == THRESHOLD_SCAN;
	}
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		sums->files += w->pressure[i].fd >= 0;
		sums->bytes += w->pressure[i].history.space * sizeof(struct psi_point);
	}
}

void pressure_write_status(const struct agent *a, struct jsonw *json)
{
	const struct triggers *ts = &a->pressure.triggers;
	int64_t threads = triggers_threads(a);
	struct sums sums = {};

	for (uint32_t i = 0; i < a->pins.abi.slots; i++)
		if (a->watches.by_slot[i])
			add_watch(a->watches.by_slot[i], &sums);
	jsonw_string(json, "follow", way_name(ts->set, sums.waiting + sums.scanned));
	jsonw_object(json, "pressure");
	jsonw_u64(json, "triggers", ts->set);
	jsonw_u64(json, "triggers_max", ts->max);
	jsonw_u64(json, "waiting", sums.waiting);
	jsonw_u64(json, "scanned", sums.scanned);
	jsonw_string(json, "stopped", ts->stopped);
	jsonw_u64(json, "files", sums.files);
	jsonw_u64(json, "closing", closer_queued(ts->closer));
	if (threads >= 0) {
		jsonw_u64(json, "psimon_threads", (uint64_t)threads);
	} else {
		jsonw_string(json, "psimon_threads", NULL);
		jsonw_string(json, "psimon_threads_reason",
			     "no trigger has shown yet whether the broker has CAP_SYS_RESOURCE");
	}
	jsonw_u64(json, "bytes", sums.bytes);
	jsonw_u64(json, "scan_ms", a->pressure.every_ns / NSEC_PER_MSEC);
	jsonw_u64(json, "notices", ts->notices);
	jsonw_u64(json, "crossings", ts->crossings);
	jsonw_u64(json, "false_events", ts->false_events);
	jsonw_u64(json, "repeats", ts->repeats);
	jsonw_u64(json, "missed", ts->missed);
	jsonw_u64(json, "gone", ts->gone);
	jsonw_object_end(json);
}

void pressure_write_totals(const struct agent *a, struct jsonw *json)
{
	const struct triggers *ts = &a->pressure.triggers;

	jsonw_u64(json, "pressure_notices", ts->notices);
	jsonw_u64(json, "pressure_crossings", ts->crossings);
	jsonw_u64(json, "pressure_false_events", ts->false_events);
	jsonw_u64(json, "pressure_missed", ts->missed);
}
