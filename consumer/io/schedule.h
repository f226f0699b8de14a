/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * schedule.h: when the rings are drained and when the processes are scanned. It knows no domain:
 * modules say how much there is to do, or that they want a drain or a scan soon, and the schedule
 * sets the loop's timers. Main thread only.
 */
#ifndef TROCAR_CONSUMER_IO_SCHEDULE_H
#define TROCAR_CONSUMER_IO_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "shared/tools/macro.h"

/* Between scans of all processes while something is watched. */
#define SCHEDULE_SCAN_NS (30 * NSEC_PER_SEC)

/* At least so long after a scan comes one that repairs what events did not tell. */
#define SCHEDULE_REPAIR_NS (3 * NSEC_PER_SEC)

/* What is done when the time has come. */
struct schedule_calls {
	void (*drain)(void *context);  /* all rings */
	void (*settle)(void *context); /* after the last drain of a burst of events */
	void (*scan)(void *context);   /* all processes; calls schedule_scanned */
};

struct schedule {
	const struct schedule_calls *calls;			     /* borrowed */
	void *context;						     /* of the calls */
	struct loop_source *drain_timer, *settle_timer, *scan_timer; /* owned */
	uint32_t watches;					     /* that stand */
	uint32_t sessions;					     /* that run */
	uint64_t drain_every_ns; /* what drain_timer is set to */
	uint64_t scan_every_ns;	 /* what scan_timer is set to */
	uint64_t idle_scan_ns;	 /* between scans while nothing is watched; 0: no rules */
	uint64_t scanned_ns;	 /* when the last scan began */
	uint64_t scan_due_ns;	 /* when scan_timer is set to for once, 0: to its pace */
	bool settling;		 /* settle_timer waits for the rest of a burst */
};

/*
 * Makes the timers, all disarmed. `calls` and `context` are borrowed. 0 or -errno; release with
 * schedule_done in every case.
 */
int schedule_init(struct schedule *s, struct loop *loop, const struct schedule_calls *calls,
		  void *context);
void schedule_done(struct schedule *s);

/*
 * Drains when the samples ring is half full or the events ring has its first event of a burst.
 * Descriptors are borrowed. 0 or -errno.
 */
int schedule_listen(struct schedule *s, struct loop *loop, int samples_fd, int events_fd);

/* How many watches stand, how many sessions run: sets how often the rings are drained. */
void schedule_watches(struct schedule *s, uint32_t watches);
void schedule_sessions(struct schedule *s, uint32_t sessions);

/* Between scans while nothing is watched; 0: none is needed. */
void schedule_idle_scan(struct schedule *s, uint64_t every_ns);

/* Drains once more within DRAIN_SOON_NS. */
void schedule_drain_soon(struct schedule *s);

/* Schedules one scan in SCAN_SOON_NS; further calls before it runs are coalesced. */
void schedule_scan_soon(struct schedule *s);

/*
 * The same because events did not come: not sooner than SCHEDULE_REPAIR_NS after the last scan
 * began.
 */
void schedule_repair_soon(struct schedule *s);

/* A scan began at `now_ns` (CLOCK_MONOTONIC). */
void schedule_scanned(struct schedule *s, uint64_t now_ns);

#endif
