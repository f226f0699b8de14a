/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * psi_opener.h: opens the kernel's triggers for thresholds. Each trigger needs a descriptor of its
 * pressure file, which the broker opens. At most PSI_OPENER_TURN are opened in one turn of the
 * loop; the scan follows thresholds that are not yet open or cannot be opened (pressure_scan.h).
 * Main thread only.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_PSI_OPENER_H
#define TROCAR_CONSUMER_CONDITIONS_PSI_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/conditions/psi_trigger.h"
#include "consumer/conditions/threshold.h"
#include "consumer/io/loop.h"
#include "consumer/output/event_line.h"

struct fd_closer;
struct broker_client;

#define PSI_OPENER_MAX	16384 /* descriptors, including those that wait to be closed */
#define PSI_OPENER_TURN 64    /* openings per turn of the loop */

/* Descriptors kept for all other uses; triggers may take half of the rest of RLIMIT_NOFILE. */
#define PSI_OPENER_MARGIN 256

/* As broker_ask_pressure (consumer/broker/broker_ask.h). */
typedef int (*psi_opener_call)(void *context, uint64_t cgroup_id, enum resource resource,
			       int *ret_fd, const char **ret_why);

struct psi_opener {
	struct loop *loop;		 /* borrowed */
	const struct event_lines *lines; /* borrowed */
	loop_call notice;		 /* what a trigger calls, with its threshold as context */
	psi_opener_call open;		 /* NULL before psi_opener_start */
	void *context;			 /* the first argument of open */
	struct fd_closer *closer;	 /* owned */
	struct loop_source *timer;	 /* of the next turn; owned */
	uint32_t left;			 /* openings left in this turn */
	bool more;			 /* a threshold waits for the next turn */
	const char *stopped; /* why nothing is opened before the next drain; else NULL */
	uint32_t max;	     /* bound of descriptors, from RLIMIT_NOFILE and PSI_OPENER_MAX */
	bool full_said;
	enum psi_trigger_power power; /* what the process that opens the files may do */
	uint32_t set;		      /* armed triggers */
};

/*
 * Computes the bound of descriptors and creates the timer of turns, which calls `turn` with
 * `context`; `turn` has to call psi_opener_turn. Opens nothing before psi_opener_start. Returns 0
 * or -errno.
 */
int psi_opener_init(struct psi_opener *o, struct loop *loop, loop_call turn, void *context);
void psi_opener_done(struct psi_opener *o);

/*
 * Lets the broker open files from now on. Starts the closing threads: call after Landlock and
 * before the system-call filter. Returns 0 or -errno.
 */
int psi_opener_start(struct psi_opener *o, struct broker_client *link);

/*
 * Opens waiting thresholds of one watch, as many as the turn allows. Open its files for reading
 * first.
 */
void psi_opener_open(struct psi_opener *o, struct followed *f);

/* Begins a turn. True when a threshold waits that may be opened now. */
bool psi_opener_turn(struct psi_opener *o);

/* Tries again from now on the requests that failed for all thresholds. */
void psi_opener_retry(struct psi_opener *o);

/* Closes and frees a threshold that was taken out of its list. */
void psi_opener_drop(struct psi_opener *o, struct threshold *t);

/* Closes the threshold's trigger, which no longer works, and leaves the threshold to the scan. */
void psi_opener_fail(struct psi_opener *o, struct threshold *t, int error);

/* Why a threshold waits that was just added. */
extern const char psi_opener_in_turn[];

/*
 * Returns the number of kernel threads "psimon" that the triggers hold: one per watch where the
 * opener is privileged; -1 while the opener's privilege is unknown.
 */
int64_t psi_opener_threads(const struct psi_opener *o, const struct followed_slots *slots);

#endif
