/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_stacks.h: for each lock and each thread that woke waiters of it, the stack that represents
 * the most time. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_STACKS_H
#define TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_STACKS_H

#include <stdint.h>

#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/sampling/stack_sample.h"
#include "shared/tools/idmap.h"

#define LOCK_STACKS_MAX 4096

struct lock_stacks {
	/* The heaviest stack of each thread at a lock: hash -> owned. */
	struct idmap heaviest;
};

void lock_stacks_init(struct lock_stacks *s);
void lock_stacks_done(struct lock_stacks *s);

/* Records a sample with SAMPLE_WAKER that was counted for stack `number`. */
void lock_stacks_add(struct lock_stacks *s, const struct stack_sample *sample, uint32_t number);

/* Sets `stack` of the wakers of a lock. */
void lock_stacks_find(const struct lock_stacks *s, struct lock_waited *lock);

#endif
