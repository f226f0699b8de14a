/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * losses.h: losses that no record tells of, from counters to error lines and, when the output
 * itself is what fails, to stderr. Main thread only.
 */
#ifndef TROCAR_CONSUMER_TELEMETRY_LOSSES_H
#define TROCAR_CONSUMER_TELEMETRY_LOSSES_H

#include <stdint.h>

struct schedule;
struct telemetry;

/* Ways in which an event of discovery does not come: rows of a table in losses.c. */
#define LOSSES_EVENTS 4

/* What has been said so far. */
struct losses {
	const struct telemetry *telemetry; /* borrowed, as the next two */
	struct schedule *schedule;
	const char *output; /* as the options name it */
	uint64_t checked_ns;
	uint64_t dropped_lines, write_errors, processes_full, bad_records;
	uint64_t events[LOSSES_EVENTS]; /* in all, by then */
	uint64_t events_ns;		/* when that was said */
	uint64_t events_asked;		/* of all kinds, when a scan was last asked for */
	int output_error;		/* errno that stderr was told of, 0 when the output works */
};

/*
 * Says what was lost since the last look; at most once a second. Where events of discovery did not
 * come it asks for the scan that repairs it, and says so at most once in SCHEDULE_REPAIR_NS.
 */
void losses_check(struct losses *said);

#endif
