/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/pressure_status.h"

#include <stdio.h>

#include "consumer/io/fd_closer.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

#define REASON_BYTES 256

static const char *way_name(uint64_t by_trigger, uint64_t by_scan)
{
	if (by_trigger && by_scan)
		return "both";
	return by_trigger ? "trigger" : by_scan ? "scan" : "none";
}

/* Returns why no trigger follows the first of the scanned thresholds of a resource. */
static const char *first_why(const struct followed *f, enum resource resource)
{
	for (const struct threshold *t = f->thresholds; t; t = t->next)
		if (t->resource == resource && t->way != THRESHOLD_TRIGGER)
			return t->reason;
	return "";
}

static void write_resource(const struct pressure_follow *p, const struct followed *f,
			   enum resource resource, struct jsonw *json)
{
	const struct followed_file *file = &f->file[resource];
	const char *pace = psi_trigger_pace(p->opener.power);
	char both[REASON_BYTES];
	const char *reason = pace;

	jsonw_string(json, "by", file->fd < 0 ? "none" : way_name(file->by_trigger, file->by_scan));
	if (file->by_scan)
		reason = first_why(f, resource);
	if (file->by_scan && file->by_trigger) {
		snprintf(both, sizeof(both), "%u of %u thresholds by scan: %s", file->by_scan,
			 file->by_scan + file->by_trigger, reason);
		reason = both;
	}
	if (file->fd < 0)
		reason = file->off ? "its pressure is switched off (cgroup.pressure)"
				   : "its pressure file cannot be read";
	jsonw_string(json, "reason", reason);
}

static bool is_followed(const struct followed *f, int resource)
{
	return f->file[resource].by_trigger || f->file[resource].by_scan;
}

/* Counts the thresholds of all readable resources, by trigger and by scan. */
static void count_ways(const struct followed *f, uint64_t *ret_by_trigger, uint64_t *ret_by_scan)
{
	*ret_by_trigger = *ret_by_scan = 0;
	for (int i = 0; i < RESOURCE_COUNT_; i++)
		if (f->file[i].fd >= 0) {
			*ret_by_trigger += f->file[i].by_trigger;
			*ret_by_scan += f->file[i].by_scan;
		}
}

static const char *follow_reason(const struct followed *f, uint64_t by_trigger, uint64_t by_scan)
{
	if (!by_trigger && !by_scan)
		return "no rule here has a threshold on a pressure file that can be read";
	for (int i = 0; by_scan && i < RESOURCE_COUNT_; i++)
		if (f->file[i].by_scan && f->file[i].fd >= 0)
			return first_why(f, (enum resource)i);
	return "the broker opens the pressure files, the kernel reports crossed thresholds";
}

static void write_pressure(const struct pressure_follow *p, const struct followed *f, bool totals,
			   struct jsonw *json)
{
	jsonw_object(json, "pressure");
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		struct psi psi;

		if (!is_followed(f, i))
			continue;
		jsonw_object(json, rules_resource_name((enum resource)i));
		write_resource(p, f, (enum resource)i, json);
		if (totals && f->file[i].fd >= 0 && psi_read(f->file[i].fd, &psi) == 0) {
			jsonw_u64(json, "some_total_us", psi.some.total_us);
			if (psi.has_full)
				jsonw_u64(json, "full_total_us", psi.full.total_us);
		}
		jsonw_object_end(json);
	}
	jsonw_object_end(json);
}

void pressure_status_write_start(const struct pressure_follow *p, const struct watch *w,
				 struct jsonw *json)
{
	const struct followed *f = pressure_follow_of(p, w);
	uint64_t by_trigger, by_scan;
	const char *reason;

	count_ways(f, &by_trigger, &by_scan);
	jsonw_string(json, "follow", way_name(by_trigger, by_scan));
	jsonw_string(json, "follow_reason", follow_reason(f, by_trigger, by_scan));
	write_pressure(p, f, false, json);
	if (!by_scan)
		return;
	jsonw_u64(json, "scan_ms", p->scan.every_ns / NSEC_PER_MSEC);
	jsonw_string(json, "sleep", pressure_scan_sleep(&p->scan, &reason));
	jsonw_string(json, "sleep_reason", reason);
}

void pressure_status_write_watch(const struct pressure_follow *p, const struct watch *w,
				 struct jsonw *json)
{
	write_pressure(p, pressure_follow_of(p, w), true, json);
}

/* Sums over all watches. */
struct sums {
	uint64_t files, waiting, scanned, bytes;
};

static void add_followed(const struct followed *f, struct sums *sums)
{
	for (const struct threshold *t = f->thresholds; t; t = t->next) {
		sums->bytes += sizeof(*t);
		sums->waiting += t->way == THRESHOLD_WAITING;
		sums->scanned += t->way == THRESHOLD_SCAN;
	}
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		sums->files += f->file[i].fd >= 0;
		sums->bytes += f->file[i].history.space * sizeof(struct psi_point);
	}
}

void pressure_status_write(const struct pressure_follow *p, struct jsonw *json)
{
	const struct psi_opener *o = &p->opener;
	int64_t threads = psi_opener_threads(o, &p->slots);
	struct sums sums = {};

	for (uint32_t i = 0; i < p->slots.count; i++)
		add_followed(&p->slots.at[i], &sums);
	jsonw_string(json, "follow", way_name(o->set, sums.waiting + sums.scanned));
	jsonw_object(json, "pressure");
	jsonw_u64(json, "triggers", o->set);
	jsonw_u64(json, "triggers_max", o->max);
	jsonw_u64(json, "waiting", sums.waiting);
	jsonw_u64(json, "scanned", sums.scanned);
	jsonw_string(json, "stopped", o->stopped);
	jsonw_u64(json, "files", sums.files);
	jsonw_u64(json, "closing", fd_closer_queued(o->closer));
	if (threads >= 0) {
		jsonw_u64(json, "psimon_threads", (uint64_t)threads);
	} else {
		jsonw_string(json, "psimon_threads", NULL);
		jsonw_string(json, "psimon_threads_reason",
			     "not known before the first trigger: whether the broker has "
			     "CAP_SYS_RESOURCE");
	}
	jsonw_u64(json, "bytes", sums.bytes);
	jsonw_u64(json, "scan_ms", p->scan.every_ns / NSEC_PER_MSEC);
	jsonw_u64(json, "notices", p->notices);
	jsonw_u64(json, "crossings", p->crossings.noticed);
	jsonw_u64(json, "false_events", p->false_events);
	jsonw_u64(json, "repeats", p->repeats);
	jsonw_u64(json, "missed", p->crossings.missed);
	jsonw_u64(json, "gone", p->gone);
	jsonw_object_end(json);
}

void pressure_status_write_totals(const struct pressure_follow *p, struct jsonw *json)
{
	jsonw_u64(json, "pressure_notices", p->notices);
	jsonw_u64(json, "pressure_crossings", p->crossings.noticed);
	jsonw_u64(json, "pressure_false_events", p->false_events);
	jsonw_u64(json, "pressure_missed", p->crossings.missed);
}
