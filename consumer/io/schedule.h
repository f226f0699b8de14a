/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * schedule.h: decides when the rings are drained and when the processes are scanned. It has no
 * domain knowledge: modules report the amount of work, or request a drain or a scan soon, and the
 * schedule sets the loop's timers. Both have a due time, which a report or request can only move
 * earlier; a drain or a scan sets its next one. Main thread only.
 */
#ifndef TROCAR_CONSUMER_IO_SCHEDULE_H
#define TROCAR_CONSUMER_IO_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "shared/tools/macro.h"

/* The time between two scans of all processes while something is watched. */
#define SCHEDULE_SCAN_NS (30 * NSEC_PER_SEC)

/*
 * The least time between a scan and the next one that schedule_repair_soon requests is the larger
 * of SCHEDULE_REPAIR_NS and SCHEDULE_REPAIR_TIMES times the CPU time of the last scan, up to
 * SCHEDULE_SCAN_NS. On a host with 20,000 cgroups a scan takes a second of CPU time, and a user
 * that floods discovery causes one request after the other.
 */
#define SCHEDULE_REPAIR_NS    (3 * NSEC_PER_SEC)
#define SCHEDULE_REPAIR_TIMES 20

/* The functions that the schedule calls at the due times. */
struct schedule_calls {
	void (*drain)(void *context);  /* drains all rings */
	void (*settle)(void *context); /* called after the last drain of a burst of events */
	void (*scan)(void *context);   /* scans all processes and calls schedule_scanned */
};

struct schedule {
	const struct schedule_calls *calls;			     /* borrowed */
	void *context;						     /* passed to the calls */
	struct loop_source *drain_timer, *settle_timer, *scan_timer; /* owned */
	uint32_t watches;					     /* number of watches */
	uint32_t sessions;	 /* number of running sessions */
	uint64_t drain_every_ns; /* interval that drain_timer is set to */
	uint64_t drain_due_ns;	 /* when the next drain is due, or shortly before; 0: never */
	uint64_t idle_scan_ns;	 /* between scans while nothing is watched; 0: no rules */
	uint64_t scanned_ns;	 /* begin of the last scan */
	uint64_t scan_cpu_ns;	 /* CPU time of the last completed scan */
	uint64_t scan_due_ns;	 /* when the next scan is due; 0: never */
	uint64_t aftermath_ns;	 /* when a scan is due although nothing is watched any more */
	bool settling;		 /* settle_timer waits for the rest of a burst */
};

/*
 * Makes the timers, all disarmed. `calls` and `context` are borrowed. 0 or -errno; call
 * schedule_done in either case.
 */
int schedule_init(struct schedule *s, struct loop *loop, const struct schedule_calls *calls,
		  void *context);
void schedule_done(struct schedule *s);

/*
 * Adds both rings to the loop: drains when the samples ring is half full, or when the events ring
 * holds the first event of a burst. Descriptors are borrowed. 0 or -errno.
 */
int schedule_listen(struct schedule *s, struct loop *loop, int samples_fd, int events_fd);

/*
 * Report the number of watches and of running sessions; set the interval at which the rings are
 * drained.
 */
void schedule_watches(struct schedule *s, uint32_t watches);
void schedule_sessions(struct schedule *s, uint32_t sessions);

/* Sets the time between scans while nothing is watched; 0: no scan is needed. */
void schedule_idle_scan(struct schedule *s, uint64_t every_ns);

/* Schedules one more drain within DRAIN_SOON_NS. */
void schedule_drain_soon(struct schedule *s);

/*
 * Schedules a drain at `due_ns` (CLOCK_MONOTONIC) or before; not earlier than schedule_drain_soon.
 */
void schedule_drain_by(struct schedule *s, uint64_t due_ns);

/*
 * Schedules one more call of `settle` within DRAIN_SOON_NS, because the last call ran out of time.
 */
void schedule_settle_soon(struct schedule *s);

/* Schedules one scan in SCAN_SOON_NS; further calls before it runs are coalesced. */
void schedule_scan_soon(struct schedule *s);

/*
 * Schedules one scan because events were lost, at least SCHEDULE_REPAIR_NS after the last scan
 * began.
 */
void schedule_repair_soon(struct schedule *s);

/*
 * Schedules one scan SCHEDULE_SCAN_NS after the last one, even while nothing is watched, because a
 * matched process did not fit.
 */
void schedule_scan_again(struct schedule *s);

/* Call when a scan begins, at `now_ns` (CLOCK_MONOTONIC). */
void schedule_scanned(struct schedule *s, uint64_t now_ns);

/* Call when a scan has ended that took `cpu_ns` of CPU time. */
void schedule_scan_took(struct schedule *s, uint64_t cpu_ns);

#endif
