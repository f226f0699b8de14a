/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue_blame.h: which other cgroups had the CPUs that the threads of a session waited for, by the
 * map `queue_neighbours`. Main thread only; struct queue_blame belongs to the session's result.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_QUEUE_BLAME_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_QUEUE_BLAME_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/signals/neighbour_rows.h"
#include "consumer/signals/signals.h"

#define QUEUE_BLAMED 5 /* cgroups by name; the rest is one sum */

/* A reading of the map. All zero: empty. */
struct queue_counts {
	struct queue_count {
		uint64_t cgroup_id, ns;
		uint32_t slot;
	} * items; /* owned; sorted by slot and cgroup_id */
	size_t count;
};

/* Others that had the CPU, and for how much waiting: two that wait for it count twice. */
struct queue_blamed {
	struct neighbour_row row;
	uint64_t ns;
};

struct queue_blame {
	const char *why;	    /* why it is not known: a literal; NULL: it is */
	uint64_t own_ns;	    /* cgroups below the session's */
	struct queue_blamed *items; /* owned; by cgroup until queue_blame_close */
	size_t count;		    /* from then on at most QUEUE_BLAMED, the most first */
	uint64_t rest_ns;	    /* of other cgroups that are not in items */
	size_t rest;		    /* how many these are */
};

/* Notes the present counts. With `empty` it first removes all. 0 or -errno. */
int queue_blame_begin(const struct signal_host *host, bool empty, struct queue_counts *ret_counts);

/* Finds the growth since then, and asks for the paths of those with the most time. */
void queue_blame_end(const struct signal_host *host, const struct signal_target *target,
		     const struct queue_counts *before, struct queue_blame *ret_blame);

/* Makes the rows, once. */
void queue_blame_close(const struct signal_host *host, const struct signal_target *target,
		       struct queue_blame *blame);

void queue_blame_forget(struct queue_counts *counts);
void queue_blame_done(struct queue_blame *blame);

#endif
