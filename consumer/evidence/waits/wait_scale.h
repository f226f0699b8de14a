/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_scale.h: corrects the weights of the stacks of `offcpu` by the exact time that the signal
 * `pools` has. Looks find short waits by chance, the accounts know how long they were in all: so
 * the stacks of a pool and kind share out its exact time in the proportion of their looks. Pure.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_WAIT_SCALE_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_WAIT_SCALE_H

#include <stdint.h>

#include "consumer/evidence/time/thread_pools.h"
#include "consumer/sampling/stack_table.h"

struct jsonw;

/*
 * The stacks of a pool and kind keep their weight where they have fewer looks than that: one more
 * look would change the factor by a tenth.
 */
#define WAIT_SCALE_LOOKS 10

/*
 * Nor is a factor beyond these bounds one of chance: looks and accounts contradict each other. Both
 * agree on waits for a CPU, so these are scaled by any factor.
 */
#define WAIT_SCALE_MAX	    2
#define WAIT_SCALE_APART_NS (10 * NSEC_PER_MSEC) /* less is no difference */

/* What was done. A group is the stacks of one pool and one kind, in the phase `during`. */
struct wait_scale {
	uint64_t groups;		       /* that were scaled */
	uint64_t looked_ns, exact_ns;	       /* their weights, before and now */
	uint64_t least_ppm, most_ppm;	       /* smallest and largest factor */
	uint64_t left, left_ns, left_exact_ns; /* the same of the groups that were not */
	uint64_t unseen_ns;		       /* exact time of waits that no look found */
};

/*
 * Scales the stacks. The accounts have begun pools->late_ns later than the session, which is
 * `during_ns` long, and their times are taken as a share of the rest. Returns 0; -ENODATA when that
 * leaves less than half of the session; -ENOMEM. Changes nothing on failure.
 */
int wait_scale_apply(struct stack_table *stacks, const struct thread_pools *pools,
		     uint64_t during_ns, struct wait_scale *ret_scale);

/* Writes `scale`: {...}. */
void wait_scale_write(const struct wait_scale *scale, struct jsonw *w);

#endif
