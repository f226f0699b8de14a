/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * psi_opener.h: opens the kernel's triggers for thresholds. Each trigger needs a descriptor of its
 * pressure file, which the broker opens. At most PSI_OPENER_TURN are opened in one iteration of the
 * loop. The scan follows thresholds that are not yet open or cannot be opened (pressure_scan.h).
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

#define PSI_OPENER_MAX	16384 /* descriptors, including those waiting to be closed */
#define PSI_OPENER_TURN 64    /* openings per iteration of the loop */

/* Descriptors kept for all other uses; triggers may take half of the rest of RLIMIT_NOFILE. */
#define PSI_OPENER_MARGIN 256

/* Same contract as broker_ask_pressure (consumer/broker/broker_ask.h). */
typedef int (*psi_opener_call)(void *context, uint64_t cgroup_id, enum resource resource,
			       int *ret_fd, const char **ret_why);

struct psi_opener {
	struct loop *loop;		 /* borrowed */
	const struct event_lines *lines; /* borrowed */
	loop_call notice;		 /* called by a trigger with its threshold as context */
	psi_opener_call open;		 /* NULL before psi_opener_start */
	void *context;			 /* the first argument of open */
	struct fd_closer *closer;	 /* owned */
	struct loop_source *timer;	 /* for the next iteration; owned */
	uint32_t left;			 /* openings left in this iteration */
	bool more;			 /* a threshold waits for the next iteration */
	const char *stopped;		 /* why nothing opens before the next drain; else NULL */
	uint32_t max; /* limit of descriptors, from RLIMIT_NOFILE and PSI_OPENER_MAX */
	bool full_said;
	enum psi_trigger_power power; /* privilege of the process that opens the files */
	uint32_t set;		      /* armed triggers */
};

/*
 * Computes the limit of descriptors and creates the timer, which calls `turn` with `context` in the
 * next iteration; `turn` must call psi_opener_turn. Opens nothing before psi_opener_start. Returns
 * 0 or -errno. Release with psi_opener_done.
 */
int psi_opener_init(struct psi_opener *o, struct loop *loop, loop_call turn, void *context);
void psi_opener_done(struct psi_opener *o);

/*
 * Lets the broker open files from now on, and starts the closing threads: call after Landlock and
 * before the system-call filter. Returns 0 or -errno.
 */
int psi_opener_start(struct psi_opener *o, struct broker_client *link);

/*
 * Opens waiting thresholds of one watch, as many as this iteration allows. Open its files for
 * reading first.
 */
void psi_opener_open(struct psi_opener *o, struct followed *f);

/* Begins a new allowance of openings. Returns true if a threshold waits that may be opened now. */
bool psi_opener_turn(struct psi_opener *o);

/* Enables retries of the requests that failed for all thresholds. */
void psi_opener_retry(struct psi_opener *o);

/* Closes and frees a threshold that was removed from its list. */
void psi_opener_drop(struct psi_opener *o, struct threshold *t);

/* Closes the threshold's trigger, which no longer works, and leaves the threshold to the scan. */
void psi_opener_fail(struct psi_opener *o, struct threshold *t, int error);

/* The reason of a threshold that was just added and waits. */
extern const char psi_opener_in_turn[];

/*
 * Returns the number of kernel threads "psimon" that the triggers hold: one per watch if the opener
 * is privileged; -1 while the opener's privilege is unknown.
 */
int64_t psi_opener_threads(const struct psi_opener *o, const struct followed_slots *slots);

#endif
