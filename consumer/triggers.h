/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * triggers.h: the thresholds of all watches, and the kernel's triggers that follow them. A
 * threshold is a resource, some or full, a stall and a window in one watch; rules that ask for the
 * same share it. Each wants one descriptor. They are opened at most TRIGGERS_TURN in one turn of
 * the loop; what is not open, or cannot be, the scan follows (pressure.h). Main thread only.
 */
#ifndef TROCAR_CONSUMER_TRIGGERS_H
#define TROCAR_CONSUMER_TRIGGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/psi.h"
#include "consumer/trigger.h"
#include "shared/jsonw.h"
#include "shared/rules.h"

struct agent;
struct closer;
struct loop_source;
struct watch;

#define TRIGGERS_MAX  16384 /* descriptors, those that wait to be closed included */
#define TRIGGERS_TURN 64    /* openings per turn of the loop */

/* Descriptors that are kept for everything else; what is left is shared with the read-only files.
 */
#define TRIGGERS_MARGIN 256

enum threshold_way {
	THRESHOLD_WAITING, /* followed by scan until its turn comes, or the next try */
	THRESHOLD_TRIGGER,
	THRESHOLD_SCAN, /* no further try as long as the watch and the rule are */
};

struct threshold {
	struct threshold *next; /* of the same watch */
	struct watch *watch;
	enum resource resource;
	bool full;
	bool wanted; /* by a rule in the watch; only while that is being found out */
	uint32_t stall_ms, window_ms;
	enum threshold_way way;
	const char *why; /* it is not followed by a trigger */
	int fd;		 /* with the trigger, owned; -1 without */
	struct loop_source *source;
	struct psi_point crossed; /* last crossing that was acted on; all 0 for none */
	uint64_t look_ns;	  /* the kernel told too early: read until then, 0 for not */
};

/* As link_pressure_open (consumer/link.h). */
typedef int (*triggers_opener)(void *context, uint64_t cgroup_id, enum resource resource,
			       int *ret_fd, const char **ret_why);

struct triggers {
	triggers_opener opener;
	void *context; /* of the opener */
	struct closer *closer;
	struct loop_source *timer; /* the next turn */
	uint32_t left;		   /* openings left in this turn */
	bool more;		   /* something waits for the next turn */
	const char *stopped;	   /* why no opening is tried before the next drain; else NULL */
	uint32_t max;		   /* descriptors, from RLIMIT_NOFILE and TRIGGERS_MAX */
	bool full_said;
	enum trigger_power power; /* of the opener */
	uint32_t set;		  /* triggers that stand */
	uint64_t notices;	  /* POLLPRI of a trigger */
	uint64_t crossings;	  /* of these: the totals had grown by the threshold */
	uint64_t false_events;	  /* the totals had not */
	uint64_t repeats;	  /* of what a reading had found less than a window before */
	uint64_t gone;		  /* POLLERR: the file went away under the trigger */
	uint64_t missed;	  /* crossings that a reading found and the kernel had not told */
};

/* The limit of descriptors, and the turn's timer. No opener, no closer yet. 0 or -errno. */
int triggers_open(struct agent *a);
void triggers_done(struct agent *a);

/*
 * From here on the broker opens the files. Starts the closing threads: after Landlock, before the
 * system-call filter. 0 or -errno.
 */
int triggers_start(struct agent *a);

/*
 * Brings the thresholds of a watch in line with its rules: those that stay keep their trigger,
 * those that are gone are closed, new ones are opened as far as this turn goes. The pressure files
 * are open by then. True when a threshold came or went.
 */
bool triggers_follow(struct watch *w);

/* Closes and frees all thresholds of a watch. */
void triggers_unfollow(struct watch *w);

/* Tries again what waits; after the rings are drained. */
void triggers_retry(struct agent *a);

/* The threshold's trigger is of no use any more: closes it, and leaves it to the scan. */
void triggers_fail(struct threshold *t, int error);

/* True when the threshold is the one that the rule's `when` asks for. */
bool threshold_is(const struct threshold *t, const struct rule_when *when);

/* Kernel threads "psimon" that the triggers hold: one per watch where the opener is privileged.
 * -1 when the kernel has not shown what the opener may do. */
int64_t triggers_threads(const struct agent *a);

#endif
