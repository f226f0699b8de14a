/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reclaim_times.h: for how long a session's threads looked for memory themselves, or had to wait
 * before they wrote on, and for how long those of other cgroups did: the difference of two
 * readings, clipped to the time between them. Pure but for the names of cgroups.
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

#define RECLAIM_PARTS	   12 /* pairs of a kind and a disk with a line; the rest is one sum */
#define RECLAIM_NEIGHBOURS 5  /* cgroups with a line; likewise */

/* Of one cgroup or of several, within the session. */
struct reclaim_time {
	uint64_t count;		/* of stretches that are over */
	uint64_t time_ns;	/* of these, and of those that are not; clipped to the session */
	uint64_t whole_ns;	/* of the first, each whole */
	uint64_t longest_ns;	/* of the first */
	uint64_t pages;		/* that were reclaimed in them */
	uint64_t orphans;	/* stretches beside them, without a seen begin */
	uint64_t open, open_ns; /* of time_ns: stretches that are not over */
	uint64_t steps[QUEUE_BUCKETS]; /* of the first, each whole (time_histogram.h) */
};

/* What the session's own threads did, of one kind. */
struct reclaim_part {
	enum reclaim_kind kind;
	uint32_t device; /* as in struct reclaim_key */
	struct reclaim_time own;
	uint64_t everybody_count, everybody_ns; /* of all cgroups, this one too */
};

/* What others did. */
struct reclaim_neighbour {
	struct neighbour_row row;
	uint64_t count, pages;
	uint64_t kind_ns[RECLAIM_KINDS_];
};

struct reclaim_times {
	uint64_t from_ns, to_ns;    /* CLOCK_MONOTONIC: of the two readings */
	struct reclaim_part *items; /* owned; the most time first */
	size_t count;		    /* of `items` with a line: at most RECLAIM_PARTS */
	size_t rest;		    /* so many more, in rest_time without a histogram */
	struct reclaim_time rest_time;
	struct reclaim_neighbour *neighbours; /* owned; by cgroup until reclaim_times_close */
	size_t n_neighbours;	       /* from then on at most RECLAIM_NEIGHBOURS, the most first */
	size_t more_neighbours;	       /* cgroups beside these */
	struct reclaim_neighbour more; /* their sum; no path */
	uint64_t awake;		       /* pauses for which the thread did not sleep: not counted */
	struct ledger ledger;	       /* of the session's stretches, open ones too */
};

/*
 * Makes *ret_times of the counts from `before` to `now`. `is_own` returns whether a slot's watch is
 * the session's, or within it (slot_nest_has). 0 or -ENOMEM. Release with reclaim_times_done.
 */
int reclaim_times_make(const struct reclaim_reading *before, const struct reclaim_reading *now,
		       bool (*is_own)(const void *context, uint32_t slot), const void *context,
		       struct reclaim_times *ret_times);

/* Makes the rows of the neighbours, once. */
void reclaim_times_close(struct reclaim_times *all, const struct neighbour_names *names);
void reclaim_times_done(struct reclaim_times *all);

/* Returns the word of reclaim_kinds.def. */
const char *reclaim_times_kind_name(enum reclaim_kind kind);

/* Returns for how long the session's threads did so, with all disks. */
uint64_t reclaim_times_ns(const struct reclaim_times *all, enum reclaim_kind kind);

/* Returns the sum over all kinds and disks, without a histogram. */
struct reclaim_time reclaim_times_sum(const struct reclaim_times *all);

/* Returns for how long a neighbour looked for memory: all kinds but the pauses of writers. */
uint64_t reclaim_times_search_ns(const struct reclaim_neighbour *n);

/* Returns those of a session's signals; the session owns them. NULL: it has none. */
static inline const struct reclaim_times *
reclaim_times_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_RECLAIM);
}

#endif
