/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/facts_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "consumer/facts/disk_text.h"
#include "shared/files/namespaces.h"
#include "shared/json/jsonw.h"

static void write_from(const struct facts_phases *f, enum facts_source source, const char *cgroup,
		       struct jsonw *w)
{
	const struct facts_place_source *s = &f->place.source[source];
	char text[64];

	if (source == FACTS_HOST) {
		jsonw_string(w, "from", "host");
		return;
	}
	jsonw_string(w, "from", s->where == FACTS_V1 ? "v1" : "v2");
	if (s->path && (s->where == FACTS_V1 || strcmp(s->path, cgroup) != 0))
		jsonw_string(w, "from_cgroup", s->path);
	if (s->asked == s->inside)
		return;
	snprintf(text, sizeof(text), "%u of %u processes are in it", s->inside, s->asked);
	jsonw_string(w, "from_reason", text);
}

/* Writes a limit; null: there is none. */
static void write_bound(const char *key, uint64_t limit, struct jsonw *w)
{
	if (limit == FACTS_NO_LIMIT)
		jsonw_null(w, key);
	else
		jsonw_u64(w, key, limit);
}

/* The quota is a fraction of one CPU. */
static void write_quota(const struct facts *f, struct jsonw *w)
{
	uint64_t quota_us, quota = facts_limit(f, FACT_CPU_QUOTA);

	if (!facts_get(f, FACT_CPU_QUOTA, &quota_us))
		return;
	if (quota_us == FACTS_NO_LIMIT)
		jsonw_null(w, "quota_pct");
	else if (quota != FACTS_NO_LIMIT)
		jsonw_milli(w, "quota_pct", (int64_t)quota);
}

static void write_device_limits(const struct facts *f, const struct facts_disks *disks,
				struct jsonw *w)
{
	static const char *const names[] = { "rbps", "wbps", "riops", "wiops" };

	for (uint32_t i = 0; i < f->n_devices; i++) {
		const struct facts_device *d = &f->devices[i];
		char name[FACTS_DEVICES_BYTES];
		bool any = false;

		for (int k = 0; k < FACTS_DEVICE_COUNTS; k++)
			any = any || d->limit[k] != FACTS_NO_LIMIT;
		if (!any)
			continue;
		disk_text_name(disks, d->major, d->minor, name);
		jsonw_object(w, NULL);
		jsonw_string(w, "device", name);
		for (int k = 0; k < FACTS_DEVICE_COUNTS; k++)
			if (d->limit[k] != FACTS_NO_LIMIT)
				jsonw_u64(w, names[k], d->limit[k]);
		jsonw_object_end(w);
	}
}

/* Writes the limits as they were in one reading. */
static void write_limits(const struct facts *f, enum facts_source source, const char *key,
			 const struct facts_disks *disks, struct jsonw *w)
{
	uint64_t value;

	jsonw_object(w, key);
	if (source == FACTS_CPU)
		write_quota(f, w);
	for (int i = 0; i < FACT_COUNT_; i++) {
		const struct fact_row *row = facts_row((enum fact)i);

		if (row->source == source && row->kind == FACTS_BOUND && i != FACT_CPU_QUOTA &&
		    facts_get(f, (enum fact)i, &value))
			write_bound(row->name, value, w);
	}
	if (source == FACTS_IO) {
		jsonw_array(w, "devices");
		write_device_limits(f, disks, w);
		jsonw_array_end(w);
	}
	jsonw_object_end(w);
}

/* Writes the limits at the trigger, and the limits at the end if one has changed. */
static void write_both_limits(const struct facts_phases *f, enum facts_source source,
			      const struct facts_disks *disks, struct jsonw *w)
{
	write_limits(&f->at[FACTS_TRIGGER], source, "limits", disks, w);
	if (facts_phases_limits_changed(f, source))
		write_limits(&f->at[FACTS_END], source, "limits_end", disks, w);
}

static void write_devices(const struct facts_phases *f, enum facts_phase phase,
			  const struct facts_disks *disks, struct jsonw *w)
{
	const struct facts *end = &f->at[phase + 1];

	jsonw_array(w, "devices");
	for (uint32_t i = 0; i < end->n_devices; i++) {
		const struct facts_device *d = &end->devices[i];
		char name[FACTS_DEVICES_BYTES];
		uint64_t grown[FACTS_DEVICE_COUNTS], sum = 0;

		for (int k = 0; k < FACTS_DEVICE_COUNTS; k++) {
			grown[k] = facts_phases_device(f, phase, d, (enum facts_device_count)k);
			sum += grown[k];
		}
		if (!sum)
			continue;
		disk_text_name(disks, d->major, d->minor, name);
		jsonw_object(w, NULL);
		jsonw_string(w, "device", name);
		for (int k = 0; k < FACTS_DEVICE_COUNTS; k++)
			jsonw_u64(w, facts_device_count_name((enum facts_device_count)k), grown[k]);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

/* Whether both readings of the phase have facts of the source. */
static bool has_phase(const struct facts_phases *f, enum facts_phase phase,
		      enum facts_source source)
{
	uint64_t files = f->at[phase].files & f->at[phase + 1].files;

	if (!facts_phases_ms(f, phase, source))
		return false;
	for (int i = 0; i < FACTS_FILE_COUNT_; i++)
		if (facts_file((enum facts_file)i)->source == source && files & 1ULL << i)
			return true;
	return false;
}

static void write_phase(const struct facts_phases *f, enum facts_phase phase,
			enum facts_source source, const struct facts_disks *disks, struct jsonw *w)
{
	uint64_t value;

	jsonw_object(w, facts_phases_name(phase));
	jsonw_u64(w, "ms", facts_phases_ms(f, phase, source));
	for (int i = 0; i < FACT_COUNT_; i++) {
		const struct fact_row *row = facts_row((enum fact)i);

		if (row->source == source && row->kind != FACTS_BOUND &&
		    facts_phases_get(f, phase, (enum fact)i, &value))
			jsonw_u64(w, row->name, value / row->divisor);
	}
	if (source == FACTS_PIDS && f->at[phase + 1].files_comm[0])
		jsonw_string(w, "files_comm", f->at[phase + 1].files_comm);
	if (source == FACTS_IO)
		write_devices(f, phase, disks, w);
	jsonw_object_end(w);
}

static const char *say_error(int error)
{
	switch (-error) {
	case EACCES:
	case EPERM:
		return "the agent may not read it";
	case ENOENT:
		return "the cgroup has no such file, or was removed";
	case ENODEV:
		return "the cgroup was removed: its last reading before that is the end";
	case EMFILE:
	case ENFILE:
		return "no descriptor was left (LimitNOFILE)";
	case ESRCH:
		return namespaces_hide_proc()
			       ? "its v1 cgroup is not known: /proc is mounted with hidepid="
			       : "its v1 cgroup is not known: it has no process, or the controller is mounted nowhere";
	case EXDEV:
		return "its processes are in the root of the v1 hierarchy, which has no limits";
	case EBUSY:
		return "the owner of the directory delayed the lookup";
	default:
		return strerror(-error);
	}
}

static void put_missing(const char *file, const char *reason, bool *any, struct jsonw *w)
{
	if (!*any)
		jsonw_array(w, "missing");
	*any = true;
	jsonw_object(w, NULL);
	jsonw_string(w, "file", file);
	jsonw_string(w, "reason", reason);
	jsonw_object_end(w);
}

/* Writes which files the readings of the baseline left out. */
static void put_shallow(const struct facts_phases *f, enum facts_source source, bool *any,
			struct jsonw *w)
{
	for (int i = 0; i < FACTS_FILE_COUNT_; i++) {
		const struct facts_file_row *row = facts_file((enum facts_file)i);
		uint64_t bit = 1ULL << i;

		if (row->source == source && row->depth == FACTS_WHOLE && f->has[FACTS_BEGIN] &&
		    f->at[FACTS_TRIGGER].files & bit && !(f->at[FACTS_BEGIN].files & bit))
			put_missing(row->name,
				    "it is read only after the trigger: many cgroups are watched",
				    any, w);
	}
}

static void write_missing(const struct facts_phases *f, enum facts_source source, struct jsonw *w)
{
	bool any = false;

	for (int i = 0; i < FACTS_FILE_COUNT_; i++) {
		const struct facts_file_row *row = facts_file((enum facts_file)i);
		int error = 0;

		for (int m = 0; m < FACTS_MOMENT_COUNT_; m++)
			if (f->has[m] && f->at[m].error[i])
				error = f->at[m].error[i];
		if (row->source == source && error)
			put_missing(row->name, say_error(error), &any, w);
	}
	put_shallow(f, source, &any, w);
	for (int p = 0; p < FACTS_PHASE_COUNT_; p++)
		if (f->reasons[p] && !facts_phases_ms(f, (enum facts_phase)p, source))
			put_missing(facts_phases_name((enum facts_phase)p), f->reasons[p], &any, w);
	if (any)
		jsonw_array_end(w);
}

/* Writes the devices below each device, and the mount points. */
static void write_disks(const struct facts_phases *f, const struct facts_disks *disks,
			struct jsonw *w)
{
	const struct facts *end = &f->at[FACTS_END];

	if (!end->n_devices || !disks)
		return;
	jsonw_array(w, "disks");
	for (uint32_t i = 0; i < end->n_devices; i++)
		disk_text_write_one(disks, end->devices[i].major, end->devices[i].minor, w);
	jsonw_array_end(w);
}

void facts_json_write(const struct facts_phases *f, enum facts_source source, const char *cgroup,
		      const struct facts_disks *disks, struct jsonw *w)
{
	jsonw_string(w, "source", facts_source_name(source));
	write_from(f, source, cgroup, w);
	write_both_limits(f, source, disks, w);
	jsonw_object(w, "phases");
	for (int p = 0; p < FACTS_PHASE_COUNT_; p++)
		if (has_phase(f, (enum facts_phase)p, source))
			write_phase(f, (enum facts_phase)p, source, disks, w);
	jsonw_object_end(w);
	if (source == FACTS_IO)
		write_disks(f, disks, w);
	write_missing(f, source, w);
}
