/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * losses.h: losses that no record tells of, from counters to error lines and, when the output
 * itself is what fails, to stderr. Main thread only.
 */
#ifndef TROCAR_CONSUMER_LOSSES_H
#define TROCAR_CONSUMER_LOSSES_H

#include <stdint.h>

struct agent;

/* What has been said so far. */
struct losses {
	uint64_t checked_ns;
	uint64_t dropped_lines, write_errors, events_lost, processes_full, bad_records;
	int output_error; /* errno that stderr was told of, 0 when the output works */
};

/* Says what was lost since the last look; at most once a second. */
void losses_check(struct agent *a);

#endif
