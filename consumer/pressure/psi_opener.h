/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * psi_opener.h: the kernel's triggers of the thresholds. Each wants one descriptor of its pressure
 * file, which the broker opens. They are opened at most PSI_OPENER_TURN in one turn of the loop;
 * what is not open, or cannot be, the scan follows (pressure_scan.h). Main thread only.
 */
#ifndef TROCAR_CONSUMER_PRESSURE_PSI_OPENER_H
#define TROCAR_CONSUMER_PRESSURE_PSI_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "consumer/output/event_line.h"
#include "consumer/pressure/psi_trigger.h"
#include "consumer/pressure/threshold.h"

struct fd_closer;
struct broker_client;

#define PSI_OPENER_MAX	16384 /* descriptors, those that wait to be closed included */
#define PSI_OPENER_TURN 64    /* openings per turn of the loop */

/* Descriptors that are kept for everything else; what is left is shared with the read-only files.
 */
#define PSI_OPENER_MARGIN 256

/* As broker_ask_pressure (consumer/broker/broker_client.h). */
typedef int (*psi_opener_call)(void *context, uint64_t cgroup_id, enum resource resource,
			       int *ret_fd, const char **ret_why);

struct psi_opener {
	struct loop *loop;	   /* borrowed */
	const struct lines *lines; /* borrowed */
	loop_call notice;	   /* what a trigger calls; its context is the threshold */
	psi_opener_call open;	   /* NULL before psi_opener_start */
	void *context;		   /* of open */
	struct fd_closer *closer;  /* owned */
	struct loop_source *timer; /* the next turn; owned */
	uint32_t left;		   /* openings left in this turn */
	bool more;		   /* something waits for the next turn */
	const char *stopped;	   /* why no opening is tried before the next drain; else NULL */
	uint32_t max;		   /* descriptors, from RLIMIT_NOFILE and PSI_OPENER_MAX */
	bool full_said;
	enum psi_trigger_power power; /* of the opener */
	uint32_t set;		      /* triggers that stand */
};

/*
 * The limit of descriptors, and the timer of turns: `turn` is to call psi_opener_turn, with
 * `context`. Nothing is opened before psi_opener_start. 0 or -errno.
 */
int psi_opener_init(struct psi_opener *o, struct loop *loop, loop_call turn, void *context);
void psi_opener_done(struct psi_opener *o);

/*
 * From here on the broker opens the files. Starts the closing threads: after Landlock, before the
 * system-call filter. 0 or -errno.
 */
int psi_opener_start(struct psi_opener *o, struct broker_client *link);

/* Opens what waits of one watch, as far as the turn goes. Its files are open by then. */
void psi_opener_open(struct psi_opener *o, struct followed *f);

/* A turn of the loop has come. True when something waits that may be opened now. */
bool psi_opener_turn(struct psi_opener *o);

/* What was refused for all is tried again from here on. */
void psi_opener_retry(struct psi_opener *o);

/* Closes and frees a threshold that is out of its list. */
void psi_opener_drop(struct psi_opener *o, struct threshold *t);

/* The threshold's trigger is of no use any more: closes it, and leaves it to the scan. */
void psi_opener_fail(struct psi_opener *o, struct threshold *t, int error);

/* Why a threshold waits that has just been added. */
extern const char psi_opener_in_turn[];

/* Kernel threads "psimon" that the triggers hold: one per watch where the opener is privileged.
 * -1 when the kernel has not shown what the opener may do. */
int64_t psi_opener_threads(const struct psi_opener *o, const struct followed_slots *slots);

#endif
