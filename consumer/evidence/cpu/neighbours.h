/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * neighbours.h: the CPU time of all cgroups while a session ran. The sampler counts the time of
 * every tick by cgroup, on all CPUs, while control.sessions is not 0 (bpf/cpu/neighbours.h).
 * Sessions that overlap share the counts, so each takes the difference between its begin and its
 * end; the map is emptied only when no session runs. neighbour_cpus.h divides them by CPU. Main
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

#define NEIGHBOURS_NAMED 8 /* those with the most CPU time; the rest is one sum */

/* CPU time that a cgroup had when the session began. */
struct neighbour_before {
	uint64_t cgroup_id, cpu_ns;
};

/* What had been counted when a session began. */
struct neighbour_counts {
	const char *why; /* why the counts are not known: a literal; NULL: they are */
	struct neighbour_before *items; /* owned, ascending by id */
	size_t count;
	struct neighbour_cpus by_cpu;
	struct totals totals;
};

/* CPU time of a cgroup, without those below it, or of a user's directory. */
struct neighbour_time {
	struct neighbour_row row;
	uint64_t cpu_ns;
	uint64_t beside_ns;		 /* of that, on the CPUs that the session's cgroup ran on */
	const struct neighbour *now;	 /* borrowed while the list is made */
	uint32_t slot;			 /* of the last tick */
	char name[NEIGHBOUR_NAME_BYTES]; /* last component of the path, perhaps cut */
	/* Of the threads with half of the ticks and more; "": no name has so many, or more than one
	 * cgroup is meant. */
	char comm[COMM_BYTES];
};

/*
 * CPU time while a session ran. All zero: not counted. From neighbours_end to neighbours_close
 * `items` has all cgroups, the session's too, and there are no sums but those from idle_ns on.
 */
struct neighbours {
	size_t cpus;	    /* that ticked at the end; 0: none, or the counts are not known */
	uint64_t lasted_ns; /* how long it was counted */
	uint64_t own_ns;    /* of the session's cgroup and all below it */
	size_t own_cpus;    /* that it ran on; 0: it did not run, or that is not known */
	uint64_t beside_ns; /* of all others on these; where there are none, on all CPUs */
	uint64_t others_ns; /* of all others, with unlisted_ns and hidden_ns */
	struct neighbour_time *items; /* owned; descending by cpu_ns, at most NEIGHBOURS_NAMED */
	size_t count;
	uint64_t rest_ns; /* of cgroups that are not in items */
	size_t rest;	  /* how many these are */
	uint64_t idle_ns;
	uint64_t unlisted_ns;	      /* of cgroups that found no room in the map */
	uint64_t short_ns;	      /* of these: the map was not full */
	uint64_t hidden_ns;	      /* of cgroups outside of the loader's --scope */
	struct neighbour_cpus by_cpu; /* until neighbours_close */
};

/* The session's cgroup. */
struct neighbours_target {
	uint64_t cgroup_id;
	const char *cgroup; /* path */
	uint32_t slot;
	struct cgroup_names *names; /* of the session; NULL: none are kept */
};

/*
 * Makes the sampler count for one session more, and sets *ret_counts to the present counts. Empties
 * the map when no session runs.
 */
void neighbours_begin(const struct pinned_maps *pins, struct neighbour_counts *ret_counts);

/*
 * Makes the sampler count for one session less, and sets *ret_found to the counts since
 * neighbours_begin, but for cpus and lasted_ns. Asks for the paths of the cgroups, of those that
 * had the most time each with a process that was seen in it. Release with neighbours_done.
 */
void neighbours_end(const struct pinned_maps *pins, struct cgroups *cgroups,
		    const struct neighbours_target *of, struct neighbour_counts *counts,
		    struct neighbours *ret_found);

/* Takes the session's own cgroups out, and makes the rows of the others, once. 0 or -ENOMEM.
 */
int neighbours_close(struct cgroups *cgroups, const struct neighbours_target *of,
		     struct neighbours *n);

/* Frees the members of `counts`. */
void neighbour_counts_done(struct neighbour_counts *counts);

/* Frees the members of `n`. */
void neighbours_done(struct neighbours *n);

/* Returns those of a session's signals; the session owns them. NULL: it has none. */
static inline const struct neighbours *neighbours_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_NEIGHBOURS);
}

#endif
