/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reclaim_times.h: the time of a session's threads in direct reclaim and in dirty throttling, and
 * that of other cgroups: the difference of two readings, clipped to the time between them. Pure,
 * except for the names of cgroups.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_MEMORY_RECLAIM_TIMES_H
#define TROCAR_CONSUMER_EVIDENCE_MEMORY_RECLAIM_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/memory/reclaim_maps.h"
#include "consumer/signals/ledger.h"
#include "consumer/signals/neighbour_rows.h"
#include "consumer/signals/signals.h"
#include "consumer/signals/slot_nest.h"

#define RECLAIM_PARTS	   12 /* pairs of kind and disk with a line; the others are one sum */
#define RECLAIM_NEIGHBOURS 5  /* cgroups with a line; the others are one sum */

/* The reclaim events of one or several cgroups within the session. */
struct reclaim_time {
	uint64_t count;		/* completed events */
	uint64_t time_ns;	/* of completed and unfinished events, clipped to the session */
	uint64_t whole_ns;	/* of completed events, each in full */
	uint64_t longest_ns;	/* of completed events */
	uint64_t pages;		/* reclaimed in completed events */
	uint64_t orphans;	/* additional events with an unseen begin */
	uint64_t open, open_ns; /* unfinished events; open_ns is part of time_ns */
	uint64_t steps[QUEUE_BUCKETS]; /* completed events, each in full (time_histogram.h) */
};

/* Events of the session's own threads, of one kind. */
struct reclaim_part {
	enum reclaim_kind kind;
	uint32_t device; /* as in struct reclaim_key */
	struct reclaim_time own;
	uint64_t everybody_count, everybody_ns; /* of all cgroups, including the session's */
};

/* Events of another cgroup. */
struct reclaim_neighbour {
	struct neighbour_row row;
	uint64_t count, pages;
	uint64_t kind_ns[RECLAIM_KINDS_];
};

struct reclaim_times {
	uint64_t from_ns, to_ns;    /* CLOCK_MONOTONIC: of the two readings */
	struct reclaim_part *items; /* owned; the most time first */
	size_t count;		    /* items with a line: at most RECLAIM_PARTS */
	size_t rest; /* number of other pairs, summed in rest_time without a histogram */
	struct reclaim_time rest_time;
	struct reclaim_neighbour *neighbours; /* owned; by cgroup until reclaim_times_close */
	size_t n_neighbours; /* at most RECLAIM_NEIGHBOURS after the close, the most time first */
	size_t more_neighbours;	       /* number of other cgroups */
	struct reclaim_neighbour more; /* sum of the other cgroups; no path */
	uint64_t awake;		       /* pauses in which the thread did not sleep: not counted */
	struct ledger ledger;	       /* of the session's events, including unfinished ones */
};

/*
 * Sets *ret_times to the counts from `before` to `now`; `owner` has the test for the session's
 * slots. Returns 0 or -ENOMEM. Release with reclaim_times_done.
 */
int reclaim_times_make(const struct reclaim_reading *before, const struct reclaim_reading *now,
		       const struct slot_owner *owner, struct reclaim_times *ret_times);

/* Makes the rows of the neighbours. Call once. */
void reclaim_times_close(struct reclaim_times *all, const struct neighbour_names *names);
void reclaim_times_done(struct reclaim_times *all);

/* Returns the kind's word from reclaim_kinds.def. */
const char *reclaim_times_kind_name(enum reclaim_kind kind);

/* Returns the time of the session's threads in events of a kind, over all disks. */
uint64_t reclaim_times_ns(const struct reclaim_times *all, enum reclaim_kind kind);

/* Returns the sum over all kinds and disks, without a histogram. */
struct reclaim_time reclaim_times_sum(const struct reclaim_times *all);

/* Returns the direct-reclaim time of a neighbour: all kinds but dirty throttling. */
uint64_t reclaim_times_search_ns(const struct reclaim_neighbour *n);

/* Returns the reclaim times of a session's signals, which the session owns; NULL if it has none. */
static inline const struct reclaim_times *
reclaim_times_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_RECLAIM);
}

#endif
