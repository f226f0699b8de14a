/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure_follow.h: follows the pressure of the watched cgroups. A trigger of the kernel follows a
 * threshold where the broker opens the file (psi_opener.h): then no timer of this file runs. The
 * scan follows the other thresholds (pressure_scan.h). Main thread only.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_PRESSURE_FOLLOW_H
#define TROCAR_CONSUMER_CONDITIONS_PRESSURE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/conditions/crossing.h"
#include "consumer/conditions/pressure_scan.h"
#include "consumer/conditions/psi_opener.h"
#include "consumer/output/event_log.h"
#include "consumer/watch/watch.h"

struct pressure_follow {
	const struct event_log *log; /* borrowed */
	struct followed_slots slots; /* owned; by slot of the watch */
	struct psi_opener opener;
	struct pressure_scan scan;
	struct crossings crossings;
	struct loop_source *look; /* timer, after notices that came too early */
	uint64_t look_every_ns;	  /* its interval; 0: not set */
	uint64_t read_ns;	  /* when pressure_follow_drained last read */
	uint64_t looked_ns;	  /* and last looked for files that are not there */
	/* Borrowed; set after pressure_follow_init. NULL: there are no looks. */
	const struct wait_recorder *waits;
	uint64_t stuck_pass;   /* number of the last pass that was checked for stuck threads */
	uint64_t notices;      /* POLLPRI of triggers */
	uint64_t false_events; /* of these: the total had not grown by the threshold */
	uint64_t repeats; /* of these: a reading had found the crossing less than a window before */
	uint64_t gone;	  /* POLLERR: the file went away under the trigger */
};

/*
 * Opens the system-wide files and triggers, and allocates room for `slots` watches. Call before the
 * lock-down. Returns 0 or -errno (not for a kernel without PSI). Release with pressure_follow_done.
 */
int pressure_follow_open(struct pressure_follow *p, struct loop *loop, uint32_t slots);
void pressure_follow_done(struct pressure_follow *p);

/* Stores its collaborators, borrowed. */
void pressure_follow_init(struct pressure_follow *p, const struct event_log *log,
			  struct triggers *triggers);

/*
 * Opens and closes files, triggers and the scan as the rules of the watch need. Call after every
 * change of them.
 */
void pressure_follow_changed(struct pressure_follow *p, struct watch *w);

/*
 * Opens the files that could not be looked up in time when the watch began. Call at each scan of
 * the processes.
 */
void pressure_follow_again(struct pressure_follow *p, struct watch *w);

/* Closes the files and triggers of a watch that ends. */
void pressure_follow_stopped(struct pressure_follow *p, const struct watch *w);

/*
 * Call after each drain of the rings. Reads the files that triggers follow, at most once in
 * APART_NS: so the history has a point shortly before the next crossing, and a crossing for which
 * the kernel gave no notice is acted on. Opens waiting thresholds. Follows the CPU time of watches
 * with a rule that asks for it (quiet_follow.h), by the facts that were read at this drain, and
 * their threads (stuck_follow.h), by the recorder's looks.
 */
void pressure_follow_drained(struct pressure_follow *p, uint64_t now_ns);

/* Tries again to open waiting thresholds: the broker is back. */
void pressure_follow_retry(struct pressure_follow *p);

/* Handles the kernel's notice for a threshold. `gone`: its file went away. */
void pressure_follow_notice(struct pressure_follow *p, struct threshold *t, bool gone);

/* Returns the thresholds that are followed for a watch. */
struct followed *pressure_follow_of(const struct pressure_follow *p, const struct watch *w);

#endif
