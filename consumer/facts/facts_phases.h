/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts_phases.h: the facts of a session: readings in the baseline, before the onset, at the
 * trigger and at the end, and their differences by phase. The files are opened at the trigger and
 * read again while the session runs: for a cgroup that is removed, the last reading is the end. The
 * main thread makes it, the report thread reads it.
 */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_PHASES_H
#define TROCAR_CONSUMER_FACTS_FACTS_PHASES_H

#include "consumer/facts/facts_record.h"

/* A phase is the time between two moments. */
enum facts_moment { FACTS_CALM, FACTS_BEGIN, FACTS_TRIGGER, FACTS_END, FACTS_MOMENT_COUNT_ };
enum facts_phase { FACTS_BEFORE, FACTS_ONSET, FACTS_DURING, FACTS_PHASE_COUNT_ };

/* A reading from before the onset may be this much older than it. */
#define FACTS_ONSET_SLACK_NS (10 * NSEC_PER_SEC)

/* While the session runs, readings are this far apart. */
#define FACTS_AGAIN_NS (500 * NSEC_PER_MSEC)

struct facts_phases {
	struct facts_place place;
	struct facts_files files; /* of the place, open until facts_phases_end */
	struct facts at[FACTS_MOMENT_COUNT_];
	bool has[FACTS_MOMENT_COUNT_];
	/* Time of each source's end reading. Earlier than at[FACTS_END]: its files are gone. */
	uint64_t until_ns[FACTS_SOURCE_COUNT_];
	const char *reasons[FACTS_PHASE_COUNT_]; /* why there is no such phase; a literal */
};

/* Returns "before", "onset" or "during". */
const char *facts_phases_name(enum facts_phase phase);

/*
 * Makes the facts of a session in the cgroup at `path` that begins now. Reads the present facts,
 * and takes earlier readings from `record` (may be NULL), between `since_ns` and `onset_ns`, the
 * begin of the measured time (UINT64_MAX: nothing was measured). Returns NULL without memory.
 */
struct facts_phases *facts_phases_new(struct facts_reader *reader, const char *path,
				      const struct facts_record *record, uint64_t since_ns,
				      uint64_t onset_ns);
void facts_phases_free(struct facts_phases *f); /* NULL is allowed */

/* Reads the facts again if the last reading is at least FACTS_AGAIN_NS old. */
void facts_phases_step(struct facts_phases *f, uint64_t now_ns);

/* Reads the facts at the end, and closes the files. */
void facts_phases_end(struct facts_phases *f);

/* Returns whether files of the source were readable at the trigger and no longer at the end. */
bool facts_phases_gone(const struct facts_phases *f, enum facts_source source);

/* Returns whether the end is one reading: no source of it is gone. */
bool facts_phases_whole(const struct facts_phases *f);

/* Returns the length of a phase of the source; 0: nothing was read for it. */
uint64_t facts_phases_ms(const struct facts_phases *f, enum facts_phase phase,
			 enum facts_source source);

/*
 * Returns whether the fact was read for the phase. Sets *ret_value to the growth of a counter, in
 * the unit of facts.value, or to the value of a gauge at the phase's end.
 */
bool facts_phases_get(const struct facts_phases *f, enum facts_phase phase, enum fact fact,
		      uint64_t *ret_value);

/*
 * Adds up the growth of a counter in onset and during; sets *ret_ms to the length of these phases.
 */
bool facts_phases_stall(const struct facts_phases *f, enum fact fact, uint64_t *ret_value,
			uint64_t *ret_ms);

/* The change of a limit since the trigger. */
enum facts_since {
	FACTS_KEPT,
	FACTS_SET,     /* no limit at the trigger */
	FACTS_LIFTED,  /* no limit at the end */
	FACTS_CHANGED, /* a different limit at the end */
	FACTS_REMOVED, /* its cgroup is gone */
};

/*
 * Returns the limit (facts_limit) at the trigger, or, without one there, at the end; FACTS_NO_LIMIT
 * if there is none. Sets *ret_since to its change.
 */
uint64_t facts_phases_limit(const struct facts_phases *f, enum fact fact,
			    enum facts_since *ret_since);

/* Does the same as facts_phases_limit for a limit of a device. */
uint64_t facts_phases_device_limit(const struct facts_phases *f, const struct facts_device *device,
				   enum facts_device_count count, enum facts_since *ret_since);

/* Returns whether a limit of the source differs between the trigger and the end. */
bool facts_phases_limits_changed(const struct facts_phases *f, enum facts_source source);

/* Returns the growth of a device's counter in the phase; 0 also if it was not read. */
uint64_t facts_phases_device(const struct facts_phases *f, enum facts_phase phase,
			     const struct facts_device *device, enum facts_device_count count);

#endif
