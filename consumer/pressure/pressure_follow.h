/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure_follow.h: following the pressure of the watched cgroups. A threshold is followed by a
 * trigger of the kernel where the broker opens the file (psi_opener.h): then nothing here wakes by
 * itself. The others are followed by scan (pressure_scan.h). Main thread only.
 */
#ifndef TROCAR_CONSUMER_PRESSURE_PRESSURE_FOLLOW_H
#define TROCAR_CONSUMER_PRESSURE_PRESSURE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/output/event_log.h"
#include "consumer/pressure/crossing.h"
#include "consumer/pressure/pressure_scan.h"
#include "consumer/pressure/psi_opener.h"
#include "consumer/watch/watch.h"

struct pressure {
	const struct event_log *log; /* borrowed */
	struct followed_slots slots; /* owned; by slot of the watch */
	struct psi_opener opener;
	struct pressure_scan scan;
	struct crossings crossings;
	struct loop_source *look; /* after notices that came too early */
	uint64_t look_every_ns;	  /* its interval, 0 while there are none */
	uint64_t read_ns;	  /* when pressure_follow_drained last read */
	uint64_t notices;	  /* POLLPRI of a trigger */
	uint64_t false_events;	  /* of these: the totals had not grown by the threshold */
	uint64_t repeats;	  /* of what a reading had found less than a window before */
	uint64_t gone;		  /* POLLERR: the file went away under the trigger */
};

/*
 * Opens the system-wide files and triggers, and makes room for `slots` watches; before the
 * lock-down. 0 or -errno (never for PSI absent). Release with pressure_follow_done.
 */
int pressure_follow_open(struct pressure *p, struct loop *loop, uint32_t slots);
void pressure_follow_done(struct pressure *p);

/* Gives it its collaborators, borrowed. */
void pressure_follow_init(struct pressure *p, const struct event_log *log,
			  struct triggers *triggers);

/* Follows what the rules of a watch ask for: files, triggers, scan; after every change of them. */
void pressure_follow_changed(struct pressure *p, struct watch *w);

/* Opens what could not be looked up in time when the watch began; at each scan of the processes. */
void pressure_follow_again(struct pressure *p, struct watch *w);

/* Closes what was opened for a watch that goes. */
void pressure_follow_stopped(struct pressure *p, const struct watch *w);

/*
 * After each drain of the rings: reads what triggers follow, so that there is a point shortly
 * before the next crossing, and acts on a crossing that the kernel has not told of. Opens what
 * waits.
 */
void pressure_follow_drained(struct pressure *p, uint64_t now_ns);

/* Tries again to open what waits: the broker is there again. */
void pressure_follow_retry(struct pressure *p);

/* The kernel told of a threshold; `gone`: that its file went away. */
void pressure_follow_notice(struct pressure *p, struct threshold *t, bool gone);

/* What is followed of a watch. */
struct followed *pressure_follow_of(const struct pressure *p, const struct watch *w);

#endif
