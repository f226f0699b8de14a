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
 * Takes the readings before the trigger. The onset begins at the last one before it, or, where
 * there is none, at the first one in it: each phase says how long it is.
 */
static void take_before(struct facts_phases *f, const struct facts_record *record,
			uint64_t since_ns, uint64_t onset_ns)
{
	const struct facts *calm = facts_record_from(record, since_ns);
	const struct facts *begin = facts_record_until(record, onset_ns);
	bool onset = onset_ns < f->at[FACTS_TRIGGER].time_ns;

	f->why[FACTS_BEFORE] = no_reading;
	f->why[FACTS_ONSET] = onset ? no_reading : no_onset;
	if (!calm)
		return;
	if (!onset)
		begin = &f->at[FACTS_TRIGGER];
	else if (!begin || begin->time_ns < since_ns)
		begin = calm;
	if (calm->time_ns < begin->time_ns)
		take_moment(f, FACTS_CALM, calm);
	if (onset && begin->time_ns + FACTS_ONSET_SLACK_NS < onset_ns)
		f->why[FACTS_BEFORE] = f->why[FACTS_ONSET] = old_reading;
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
	facts_reader_read(reader, path, &f->place, FACTS_WHOLE, &f->at[FACTS_TRIGGER]);
	f->has[FACTS_TRIGGER] = true;
	if (record && facts_place_same(&record->place, &f->place))
		take_before(f, record, since_ns, onset_ns);
	else
		f->why[FACTS_BEFORE] = f->why[FACTS_ONSET] = no_reading;
	return f;
}

void facts_phases_free(struct facts_phases *f)
{
	if (!f)
		return;
	facts_place_done(&f->place);
	free(f);
}

void facts_phases_end(struct facts_phases *f, struct facts_reader *reader, const char *path)
{
	facts_reader_read(reader, path, &f->place, FACTS_LIMITS, &f->at[FACTS_END]);
	f->has[FACTS_END] = true;
}

uint64_t facts_phases_ms(const struct facts_phases *f, enum facts_phase phase)
{
	const struct facts *from = &f->at[phase], *to = &f->at[phase + 1];

	if (!f->has[phase] || !f->has[phase + 1])
		return 0;
	return (to->time_ns - from->time_ns) / NSEC_PER_MSEC;
}

bool facts_phases_get(const struct facts_phases *f, enum facts_phase phase, enum fact fact,
		      uint64_t *ret_value)
{
	uint64_t from, to;

	if (!facts_phases_ms(f, phase) || !facts_get(&f->at[phase + 1], fact, &to))
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
			ms += facts_phases_ms(f, (enum facts_phase)p);
		}
	if (!ms)
		return false;
	*ret_value = sum;
	*ret_ms = ms;
	return true;
}

uint64_t facts_phases_device(const struct facts_phases *f, enum facts_phase phase,
			     const struct facts_device *device, enum facts_device_count count)
{
	const struct facts_device *from = facts_device(&f->at[phase], device->major, device->minor);
	const struct facts_device *to =
		facts_device(&f->at[phase + 1], device->major, device->minor);
	uint64_t then = from ? from->count[count] : 0, now = to ? to->count[count] : 0;

	return facts_phases_ms(f, phase) && now > then ? now - then : 0;
}
