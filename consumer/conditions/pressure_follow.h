/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure_follow.h: follows the pressure of the watched cgroups. If the broker can open the file
 * (psi_opener.h), a trigger of the kernel follows a threshold, and no timer of this file runs. The
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
	struct loop_source *look; /* timer, set after notices that arrived too early */
	uint64_t look_every_ns;	  /* its interval; 0: not set */
	uint64_t read_ns;	  /* last reading in pressure_follow_drained */
	uint64_t looked_ns;	  /* last search for files that did not exist */
	/* Borrowed; set after pressure_follow_init. NULL: no sampling passes. */
	const struct wait_recorder *waits;
	uint64_t stuck_pass;   /* number of the last pass checked for stuck threads */
	uint64_t notices;      /* POLLPRI of triggers */
	uint64_t false_events; /* part of `notices`: the total had not grown by the threshold */
	uint64_t repeats;      /* part of `notices`: a reading found this less than a window ago */
	uint64_t gone;	       /* POLLERR: the file of the trigger was removed */
};

/*
 * Opens the system-wide files and triggers, and allocates space for `slots` watches. Call before
 * the lock-down. Returns 0 or -errno (a kernel without PSI is no error). Release with
 * pressure_follow_done.
 */
int pressure_follow_open(struct pressure_follow *p, struct loop *loop, uint32_t slots);
void pressure_follow_done(struct pressure_follow *p);

/* Stores its collaborators, borrowed. */
void pressure_follow_init(struct pressure_follow *p, const struct event_log *log,
			  struct triggers *triggers);

/*
 * Opens and closes files, triggers and the scan as the rules of the watch require. Call after every
 * change of the rules.
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
 * APART_NS, so that the history has a point shortly before the next crossing, and so that a
 * crossing without a notice by the kernel is acted on. Opens waiting thresholds. For watches with a
 * rule that asks for it, follows the CPU time (quiet_follow.h), by the facts read at this drain,
 * and the threads (stuck_follow.h), by the recorder's samples.
 */
void pressure_follow_drained(struct pressure_follow *p, uint64_t now_ns);

/* Retries to open waiting thresholds, because the broker is back. */
void pressure_follow_retry(struct pressure_follow *p);

/* Handles the kernel's notice for a threshold. `gone`: its file was removed. */
void pressure_follow_notice(struct pressure_follow *p, struct threshold *t, bool gone);

/* Returns the followed thresholds of a watch. */
struct followed *pressure_follow_of(const struct pressure_follow *p, const struct watch *w);

#endif
