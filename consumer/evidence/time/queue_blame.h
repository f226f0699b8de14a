/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue_blame.h: finds the cgroups that ran on the CPUs that a session's threads waited for, by the
 * map `queue_neighbours`. Main thread only; struct queue_blame belongs to the session's result.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_QUEUE_BLAME_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_QUEUE_BLAME_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/signals/neighbour_rows.h"
#include "consumer/signals/signals.h"

#define QUEUE_BLAMED 5 /* cgroups with a name; the others are one sum */

/* A reading of the map. All zero: empty. */
struct queue_counts {
	struct queue_count {
		uint64_t cgroup_id, ns;
		uint32_t slot;
	} * items; /* owned; sorted by slot and cgroup_id */
	size_t count;
};

/*
 * A cgroup that ran, and the waiting time of the session's threads for its CPU. Two threads that
 * wait at once count twice.
 */
struct queue_blamed {
	struct neighbour_row row;
	uint64_t ns;
};

struct queue_blame {
	const char *reason;	    /* why the result is unknown: a literal; NULL: it is known */
	uint64_t own_ns;	    /* cgroups below the session's */
	struct queue_blamed *items; /* owned; by cgroup until queue_blame_close */
	size_t count;	  /* after queue_blame_close at most QUEUE_BLAMED, the most time first */
	uint64_t rest_ns; /* of other cgroups that are not in items */
	size_t rest;	  /* number of these cgroups */
};

/*
 * Records the current counts. With `empty` it removes all counts first. Returns 0 or -errno.
 * Release *ret_counts with queue_blame_forget.
 */
int queue_blame_begin(const struct signal_host *host, bool empty, struct queue_counts *ret_counts);

/*
 * Computes the growth since `before`, and requests the paths of the cgroups with the most time.
 * Release with queue_blame_done.
 */
void queue_blame_end(const struct signal_host *host, const struct signal_target *target,
		     const struct queue_counts *before, struct queue_blame *ret_blame);

/* Makes the rows. Call once. */
void queue_blame_close(const struct signal_host *host, const struct signal_target *target,
		       struct queue_blame *blame);

void queue_blame_forget(struct queue_counts *counts);
void queue_blame_done(struct queue_blame *blame);

#endif
