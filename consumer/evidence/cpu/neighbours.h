/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * neighbours.h: the CPU time of all cgroups while a session ran. The sampler counts the time of
 * every tick by cgroup, on all CPUs, while control.sessions is not 0 (bpf/cpu/neighbours.h).
 * Sessions that overlap share the counts, so each takes the difference between its begin and its
 * end; the map is emptied only when no session runs. neighbour_cpus.h splits the times by CPU. Main
 * thread only; struct neighbours belongs to the session's result.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_CPU_NEIGHBOURS_H
#define TROCAR_CONSUMER_EVIDENCE_CPU_NEIGHBOURS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/evidence/cpu/neighbour_cpus.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/neighbour_rows.h"
#include "consumer/signals/signals.h"

#define NEIGHBOURS_NAMED 8 /* cgroups with the most CPU time; the others are one sum */

/* CPU time that a cgroup had when the session began. */
struct neighbour_before {
	uint64_t cgroup_id, cpu_ns;
};

/* The counts at the begin of a session. */
struct neighbour_counts {
	const char *reason; /* why the counts are unknown: a literal; NULL: they are known */
	struct neighbour_before *items; /* owned, ascending by id */
	size_t count;
	struct neighbour_cpus by_cpu;
	struct totals totals;
};

/* CPU time of a cgroup without its descendants, or of a user's directory. */
struct neighbour_time {
	struct neighbour_row row;
	uint64_t cpu_ns;
	uint64_t beside_ns; /* part of cpu_ns on the CPUs that the session's cgroup ran on */
	const struct neighbour *now;	 /* borrowed while the list is made */
	uint32_t slot;			 /* of the last tick */
	char name[NEIGHBOUR_NAME_BYTES]; /* last component of the path, possibly truncated */
	/*
	 * Name of the threads with at least half of the ticks; "" if no name has that many, or if
	 * the row is of more than one cgroup.
	 */
	char comm[COMM_BYTES];
};

/*
 * CPU time while a session ran. All zero: not counted. From neighbours_end to neighbours_close,
 * `items` has all cgroups, including the session's, and only the sums from idle_ns on are set.
 */
struct neighbours {
	size_t cpus;	    /* CPUs that ticked at the end; 0: none, or the counts are unknown */
	uint64_t lasted_ns; /* duration of the counting */
	uint64_t own_ns;    /* of the session's cgroup and its descendants */
	size_t own_cpus;    /* CPUs that it ran on; 0: it did not run, or unknown */
	uint64_t beside_ns; /* of all others on these own_cpus; if own_cpus is 0, on all CPUs */
	uint64_t others_ns; /* of all others, including unlisted_ns and hidden_ns */
	struct neighbour_time *items; /* owned; descending by cpu_ns, at most NEIGHBOURS_NAMED */
	size_t count;
	uint64_t rest_ns; /* of cgroups that are not in `items` */
	size_t rest;	  /* number of these cgroups */
	uint64_t idle_ns;
	uint64_t unlisted_ns;	      /* of cgroups that did not fit into the map */
	uint64_t short_ns;	      /* part of unlisted_ns: the map was not full */
	uint64_t hidden_ns;	      /* of cgroups outside the loader's --scope */
	struct neighbour_cpus by_cpu; /* valid until neighbours_close */
};

/* The session's cgroup. */
struct neighbours_target {
	uint64_t cgroup_id;
	const char *cgroup; /* path */
	uint32_t slot;
	struct cgroup_names *names; /* of the session; NULL: none are kept */
};

/*
 * Makes the sampler count for one more session, and sets *ret_counts to the current counts. Empties
 * the map if no session runs.
 */
void neighbours_begin(const struct pinned_maps *pins, struct neighbour_counts *ret_counts);

/*
 * Makes the sampler count for one session fewer, and sets *ret_found to the counts since
 * neighbours_begin, except for cpus and lasted_ns. Requests the paths of the cgroups; for the
 * cgroups with the most time it also passes a process that was seen in them. Release with
 * neighbours_done.
 */
void neighbours_end(const struct pinned_maps *pins, struct cgroups *cgroups,
		    const struct neighbours_target *of, struct neighbour_counts *counts,
		    struct neighbours *ret_found);

/*
 * Removes the session's own cgroups and makes the rows of the others. Call once. Returns 0 or
 * -ENOMEM.
 */
int neighbours_close(struct cgroups *cgroups, const struct neighbours_target *of,
		     struct neighbours *n);

/* Frees the members of `counts`. */
void neighbour_counts_done(struct neighbour_counts *counts);

/* Frees the members of `n`. */
void neighbours_done(struct neighbours *n);

/* Returns the neighbours of a session's signals, which the session owns; NULL if it has none. */
static inline const struct neighbours *neighbours_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_NEIGHBOURS);
}

#endif
