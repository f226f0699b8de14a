/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/facts_phases.h"

#include <stdlib.h>

#include "shared/tools/cleanup.h"

static const char no_reading[] = "nothing was read in it: the watch, or the end of its last "
				 "session, is too recent";
static const char old_reading[] = "the last reading is too old: many cgroups are watched";
static const char no_onset[] = "the trigger measured nothing";

const char *facts_phases_name(enum facts_phase phase)
{
	static const char *const names[] = {
		[FACTS_BEFORE] = "before",
		[FACTS_ONSET] = "onset",
		[FACTS_DURING] = "during",
	};

	return names[phase];
}

static void take_moment(struct facts_phases *f, enum facts_moment moment, const struct facts *from)
{
	f->at[moment] = *from;
	f->has[moment] = true;
}

/*
 * Takes the readings before the trigger. The onset begins at the last reading before it or, if
 * there is none, at the first reading in it: each phase has its length.
 */
static void take_before(struct facts_phases *f, const struct facts_record *record,
			uint64_t since_ns, uint64_t onset_ns)
{
	const struct facts *calm = facts_record_from(record, since_ns);
	const struct facts *begin = facts_record_until(record, onset_ns);
	bool onset = onset_ns < f->at[FACTS_TRIGGER].time_ns;

	f->reasons[FACTS_BEFORE] = no_reading;
	f->reasons[FACTS_ONSET] = onset ? no_reading : no_onset;
	if (!calm)
		return;
	if (!onset)
		begin = &f->at[FACTS_TRIGGER];
	else if (!begin || begin->time_ns < since_ns)
		begin = calm;
	if (calm->time_ns < begin->time_ns)
		take_moment(f, FACTS_CALM, calm);
	if (onset && begin->time_ns + FACTS_ONSET_SLACK_NS < onset_ns)
		f->reasons[FACTS_BEFORE] = f->reasons[FACTS_ONSET] = old_reading;
	else
		take_moment(f, FACTS_BEGIN, begin);
}

struct facts_phases *facts_phases_new(struct facts_reader *reader, const char *path,
				      const struct facts_record *record, uint64_t since_ns,
				      uint64_t onset_ns)
{
	struct facts_phases *f = calloc(1, sizeof(*f));

	if (!f || facts_reader_place(reader, path, &f->place) < 0) {
		free(f);
		return NULL;
	}
	facts_reader_files_open(reader, path, &f->place, FACTS_LIMITS, &f->files);
	facts_reader_files_read(&f->files, &f->at[FACTS_TRIGGER]);
	f->has[FACTS_TRIGGER] = true;
	if (record && facts_place_same(&record->place, &f->place))
		take_before(f, record, since_ns, onset_ns);
	else
		f->reasons[FACTS_BEFORE] = f->reasons[FACTS_ONSET] = no_reading;
	return f;
}

void facts_phases_free(struct facts_phases *f)
{
	if (!f)
		return;
	facts_reader_files_close(&f->files);
	facts_place_done(&f->place);
	free(f);
}

/* Whether a file of the source could be read then and cannot be read now. */
static bool has_lost(const struct facts *then, const struct facts *now, enum facts_source source)
{
	uint64_t lost = then->files & ~now->files;

	for (int i = 0; i < FACTS_FILE_COUNT_; i++)
		if (lost & 1ULL << i && facts_file((enum facts_file)i)->source == source)
			return true;
	return false;
}

/* Reads the current facts; a source with a removed cgroup keeps its last ones. */
static void read_end(struct facts_phases *f)
{
	enum facts_moment before = f->has[FACTS_END] ? FACTS_END : FACTS_TRIGGER;
	struct facts now;

	facts_reader_files_read(&f->files, &now);
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		enum facts_source source = (enum facts_source)i;

		if (!has_lost(&f->at[before], &now, source))
			f->until_ns[i] = now.time_ns;
		else if (before == FACTS_TRIGGER)
			f->until_ns[i] = f->at[FACTS_TRIGGER].time_ns;
		if (f->until_ns[i] < now.time_ns)
			facts_take_source(&now, &f->at[before], source);
	}
	f->at[FACTS_END] = now;
	f->has[FACTS_END] = true;
}

void facts_phases_step(struct facts_phases *f, uint64_t now_ns)
{
	enum facts_moment last = f->has[FACTS_END] ? FACTS_END : FACTS_TRIGGER;

	if (f->files.has && now_ns >= f->at[last].time_ns + FACTS_AGAIN_NS)
		read_end(f);
}

void facts_phases_end(struct facts_phases *f)
{
	read_end(f);
	facts_reader_files_close(&f->files);
}

bool facts_phases_gone(const struct facts_phases *f, enum facts_source source)
{
	return f->has[FACTS_END] && f->until_ns[source] &&
	       f->until_ns[source] < f->at[FACTS_END].time_ns;
}

bool facts_phases_whole(const struct facts_phases *f)
{
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++)
		if (facts_phases_gone(f, (enum facts_source)i))
			return false;
	return f->has[FACTS_END];
}

uint64_t facts_phases_ms(const struct facts_phases *f, enum facts_phase phase,
			 enum facts_source source)
{
	uint64_t from_ns = f->at[phase].time_ns, to_ns = f->at[phase + 1].time_ns;

	if (!f->has[phase] || !f->has[phase + 1])
		return 0;
	if (phase == FACTS_DURING && facts_phases_gone(f, source))
		to_ns = f->until_ns[source];
	return (to_ns - from_ns) / NSEC_PER_MSEC;
}

bool facts_phases_get(const struct facts_phases *f, enum facts_phase phase, enum fact fact,
		      uint64_t *ret_value)
{
	uint64_t from, to;

	if (!facts_phases_ms(f, phase, facts_row(fact)->source) ||
	    !facts_get(&f->at[phase + 1], fact, &to))
		return false;
	if (facts_row(fact)->kind == FACTS_COUNTER) {
		if (!facts_get(&f->at[phase], fact, &from))
			return false;
		to = to > from ? to - from : 0;
	}
	*ret_value = to;
	return true;
}

bool facts_phases_stall(const struct facts_phases *f, enum fact fact, uint64_t *ret_value,
			uint64_t *ret_ms)
{
	uint64_t value, sum = 0, ms = 0;

	for (int p = FACTS_ONSET; p <= FACTS_DURING; p++)
		if (facts_phases_get(f, (enum facts_phase)p, fact, &value)) {
			sum += value;
			ms += facts_phases_ms(f, (enum facts_phase)p, facts_row(fact)->source);
		}
	if (!ms)
		return false;
	*ret_value = sum;
	*ret_ms = ms;
	return true;
}

/* Whether a file with limits of the source was read. */
static bool has_limits(const struct facts *f, enum facts_source source)
{
	for (int i = 0; i < FACTS_FILE_COUNT_; i++) {
		const struct facts_file_row *row = facts_file((enum facts_file)i);

		if (row->source == source && row->depth == FACTS_LIMITS && f->files & 1ULL << i)
			return true;
	}
	return false;
}

/* Chooses the limit that applied at the trigger, or else the one at the end. */
static uint64_t choose_limit(const struct facts_phases *f, enum facts_source source, uint64_t begin,
			     uint64_t end, enum facts_since *ret_since)
{
	if (facts_phases_gone(f, source))
		*ret_since = FACTS_REMOVED;
	else if (begin == end || !has_limits(&f->at[FACTS_END], source))
		*ret_since = FACTS_KEPT;
	else if (end == FACTS_NO_LIMIT)
		*ret_since = FACTS_LIFTED;
	else
		*ret_since = begin == FACTS_NO_LIMIT ? FACTS_SET : FACTS_CHANGED;
	return begin == FACTS_NO_LIMIT ? end : begin;
}

uint64_t facts_phases_limit(const struct facts_phases *f, enum fact fact,
			    enum facts_since *ret_since)
{
	return choose_limit(f, facts_row(fact)->source, facts_limit(&f->at[FACTS_TRIGGER], fact),
			    facts_limit(&f->at[FACTS_END], fact), ret_since);
}

uint64_t facts_phases_device_limit(const struct facts_phases *f, const struct facts_device *device,
				   enum facts_device_count count, enum facts_since *ret_since)
{
	const struct facts_device *begin =
		facts_device(&f->at[FACTS_TRIGGER], device->major, device->minor);
	const struct facts_device *end =
		facts_device(&f->at[FACTS_END], device->major, device->minor);

	return choose_limit(f, FACTS_IO, begin ? begin->limit[count] : FACTS_NO_LIMIT,
			    end ? end->limit[count] : FACTS_NO_LIMIT, ret_since);
}

/* Whether a device limit that is in one of two readings differs in the other. */
static bool has_moved(const struct facts_phases *f, const struct facts *with)
{
	enum facts_since since;

	for (uint32_t i = 0; i < with->n_devices; i++)
		for (int k = 0; k < FACTS_DEVICE_COUNTS; k++) {
			facts_phases_device_limit(f, &with->devices[i], (enum facts_device_count)k,
						  &since);
			if (since != FACTS_KEPT)
				return true;
		}
	return false;
}

bool facts_phases_limits_changed(const struct facts_phases *f, enum facts_source source)
{
	enum facts_since since;

	if (!f->has[FACTS_END] || facts_phases_gone(f, source))
		return false;
	for (int i = 0; i < FACT_COUNT_; i++) {
		if (facts_row((enum fact)i)->source != source ||
		    facts_row((enum fact)i)->kind != FACTS_BOUND)
			continue;
		facts_phases_limit(f, (enum fact)i, &since);
		if (since != FACTS_KEPT)
			return true;
	}
	return source == FACTS_IO &&
	       (has_moved(f, &f->at[FACTS_TRIGGER]) || has_moved(f, &f->at[FACTS_END]));
}

uint64_t facts_phases_device(const struct facts_phases *f, enum facts_phase phase,
			     const struct facts_device *device, enum facts_device_count count)
{
	const struct facts_device *from = facts_device(&f->at[phase], device->major, device->minor);
	const struct facts_device *to =
		facts_device(&f->at[phase + 1], device->major, device->minor);
	uint64_t then = from ? from->count[count] : 0, now = to ? to->count[count] : 0;

	return facts_phases_ms(f, phase, FACTS_IO) && now > then ? now - then : 0;
}
