/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * losses.h: turns counters of losses without a record into error lines, or, if the output itself
 * fails, into messages on stderr. Main thread only.
 */
#ifndef TROCAR_CONSUMER_TELEMETRY_LOSSES_H
#define TROCAR_CONSUMER_TELEMETRY_LOSSES_H

#include <stdint.h>

struct schedule;
struct telemetry;

/* Kinds of loss of a discovery event: rows of a table in losses.c. */
#define LOSSES_EVENTS 4

/* The losses reported so far. */
struct losses {
	const struct telemetry *telemetry; /* borrowed, as the next two */
	struct schedule *schedule;
	const char *output; /* output_queue_name */
	uint64_t checked_ns;
	uint64_t dropped_lines, write_errors, lost_files, processes_full, matches_full,
		modules_refused, bad_records;
	uint64_t events[LOSSES_EVENTS]; /* totals that the last line reported */
	uint64_t events_ns;		/* time of that line */
	uint64_t events_asked;		/* total of all kinds when a scan was last scheduled */
	int output_error;		/* errno that stderr has reported; 0: the output works */
};

/*
 * Reports the losses since the last check, at most once a second. For lost discovery events it
 * schedules the scan that repairs the loss, and reports them at most once in SCHEDULE_REPAIR_NS.
 */
void losses_check(struct losses *said);

#endif
