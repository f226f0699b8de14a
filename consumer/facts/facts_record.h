/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts_record.h: keeps the last readings of a watch's facts, so that a session can compare them
 * with the baseline before its onset. One per watch. Main thread only.
 */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_RECORD_H
#define TROCAR_CONSUMER_FACTS_FACTS_RECORD_H

#include "consumer/facts/facts_reader.h"
#include "shared/tools/macro.h"

/* Two readings are at least this far apart; the points cover more than the longest onset, 10 s. */
#define FACTS_APART_NS (4 * NSEC_PER_SEC)
#define FACTS_POINTS   4 /* 4 KiB per watch */

/* The v1 cgroups of a watch's processes are looked up again after this time. */
#define FACTS_PLACE_NS (300 * NSEC_PER_SEC)

/* All zero: no readings. Release with facts_record_done. */
struct facts_record {
	struct facts *points; /* owned ring of FACTS_POINTS; NULL before the first reading */
	uint32_t count, newest;
	uint64_t read_ns;	  /* last attempt to read; 0: never */
	struct facts_place place; /* of the points */
	uint64_t placed_ns;	  /* time of its last lookup; 0: never */
};

void facts_record_done(struct facts_record *h);

/* Returns whether the newest reading is old enough for another one. */
bool facts_record_wants(const struct facts_record *h, uint64_t now_ns);

/*
 * Reads the facts of the cgroup at `path`, down to `depth`, and adds them as a point, which may
 * replace the oldest. Without memory it keeps no point.
 */
void facts_record_read(struct facts_record *h, struct facts_reader *reader, const char *path,
		       enum facts_depth depth, uint64_t now_ns);

/*
 * Adds a reading that a session has made at `place`; drops the points if they are of another place.
 */
void facts_record_add(struct facts_record *h, const struct facts_place *place,
		      const struct facts *facts);

/* Returns the newest point at or before `time_ns`, or NULL. */
const struct facts *facts_record_until(const struct facts_record *h, uint64_t time_ns);

/* Returns the oldest point at or after `time_ns`, or NULL. */
const struct facts *facts_record_from(const struct facts_record *h, uint64_t time_ns);

#endif
