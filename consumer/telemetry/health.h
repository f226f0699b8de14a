/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * health.h: writes the agent's cost and losses as a line every --health-seconds while anything is
 * watched. A drain writes it, so it causes no extra wake-up. Main thread only.
 */
#ifndef TROCAR_CONSUMER_TELEMETRY_HEALTH_H
#define TROCAR_CONSUMER_TELEMETRY_HEALTH_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "shared/abi/abi.h"

struct jsonw;
struct telemetry;
struct watch;

/* Losses outside of slots, as totals of this consumer. */
struct health_losses {
	uint64_t held, lines, left_out, events, limited, over_quota, shed, errors, targets, records;
};

#define HEALTH_RINGS 3 /* samples, events, errors */

/* The totals of the last line, and the counts since then. */
struct health {
	const struct telemetry *telemetry; /* borrowed */
	uint64_t every_ns;		   /* 0: never */
	uint64_t said_ns; /* time of the last line, or of the first watch; 0: nothing is watched */
	uint64_t cpu_ns;  /* the consumer's CPU time at said_ns */
	uint64_t lines;	  /* lines written until said_ns */
	struct slot_counters ticks; /* since said_ns, in slots of watches, including ended ones */
	struct health_losses losses;
	uint64_t peak_bytes[HEALTH_RINGS]; /* highest fill that a drain found since said_ns */
};

/*
 * Returns the resident memory of this process: second number of /proc/self/statm (proc(5)); 0: not
 * readable.
 */
uint64_t health_resident_bytes(void);

/* Writes the keys of the longest iterations of the main loop. */
void health_write_longest(const struct loop_longest *longest, struct jsonw *w);

/* `seconds` between lines; 0: no lines. */
void health_init(struct health *h, const struct telemetry *telemetry, uint32_t seconds);

/* Records the fill of the rings. Call before each drain. */
void health_fill(struct health *h);

/*
 * Writes the line if it is due, or if nothing is watched any more and something was lost since the
 * last line. Call after each drain. `now_ns` is CLOCK_MONOTONIC.
 */
void health_check(struct health *h, uint64_t now_ns);

/* Adds the counts of the watch's slot. Call before the line and when the watch ends. */
void health_take(struct health *h, struct watch *w);

#endif
