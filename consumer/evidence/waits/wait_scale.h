/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_scale.h: corrects the weights of the stacks of `offcpu` by the exact times of the signal
 * `pools`. Sampling finds short waits by chance, while accounts have their total time. So the exact
 * time of a pool and kind is divided among its stacks in proportion to their samples. Pure.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_WAIT_SCALE_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_WAIT_SCALE_H

#include <stdint.h>

#include "consumer/evidence/time/thread_pools.h"
#include "consumer/sampling/stack_table.h"

struct jsonw;

/*
 * Below this number of samples the stacks of a pool and kind keep their weight: one more sample
 * would change the factor by a tenth.
 */
#define WAIT_SCALE_LOOKS 10

/*
 * A factor above this limit, or below its inverse, is not explained by chance: samples and accounts
 * contradict each other. Waits for a CPU are scaled by any factor, because both agree on them.
 */
#define WAIT_SCALE_MAX	    2
#define WAIT_SCALE_APART_NS (10 * NSEC_PER_MSEC) /* smaller differences are ignored */

/* The result of scaling. A group is the stacks of one pool and one kind, in the phase `during`. */
struct wait_scale {
	uint64_t groups;	      /* scaled groups */
	uint64_t looked_ns, exact_ns; /* total weights of the scaled groups before and after */
	uint64_t least_ppm, most_ppm; /* smallest and largest factor */
	uint64_t left, left_ns,
		left_exact_ns; /* count and weights of the groups that were not scaled */
	uint64_t unseen_ns;    /* exact time of waits without any sample */
};

/*
 * Scales the stacks. The accounts began pools->late_ns after the session, which lasted `during_ns`,
 * so their times are relative to the rest. Returns 0; -ENODATA if the rest is less than half of the
 * session; -ENOMEM. Changes nothing on failure.
 */
int wait_scale_apply(struct stack_table *stacks, const struct thread_pools *pools,
		     uint64_t during_ns, struct wait_scale *ret_scale);

/* Writes `scale`: {...}. */
void wait_scale_write(const struct wait_scale *scale, struct jsonw *w);

#endif
