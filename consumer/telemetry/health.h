/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * health.h: what the agent costs and what it loses, as a line once in a while (--health-seconds)
 * while something is watched. It is said at a drain: no wake-up is made for it. Main thread only.
 */
#ifndef TROCAR_CONSUMER_TELEMETRY_HEALTH_H
#define TROCAR_CONSUMER_TELEMETRY_HEALTH_H

#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

struct telemetry;
struct watch;

/* Losses outside slots, as totals of this agent. */
struct health_losses {
	uint64_t held, lines, left_out, events, limited, over_quota, shed, errors, targets, records;
};

#define HEALTH_RINGS 3 /* samples, events, errors */

/* What the last line covered, and what has come since. */
struct health {
	const struct telemetry *telemetry; /* borrowed */
	uint64_t every_ns;		   /* 0: never */
	uint64_t said_ns; /* the line, or when the first watch came; 0: nothing is watched */
	uint64_t cpu_ns;  /* the consumer's CPU time then */
	uint64_t lines;	  /* written until then */
	struct slot_counters ticks; /* since then, in slots of watches, gone ones included */
	struct health_losses losses;
	uint64_t peak_bytes[HEALTH_RINGS]; /* highest fill that a drain found since */
};

/* Resident memory of this process: second number of /proc/self/statm (proc(5)). 0: not readable. */
uint64_t health_resident_bytes(void);

/* `seconds` between lines, 0 for none. */
void health_init(struct health *h, const struct telemetry *telemetry, uint32_t seconds);

/* The fill of the rings; before each drain. */
void health_fill(struct health *h);

/*
 * Says the line when it is due, or when nothing is watched any more and something was lost since
 * the last; after each drain. `now_ns` is CLOCK_MONOTONIC.
 */
void health_check(struct health *h, uint64_t now_ns);

/* Takes over what its slot has counted: before the line, and when the watch goes. */
void health_take(struct health *h, struct watch *w);

#endif
