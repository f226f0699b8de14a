/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_stacks.h: which stack of those that woke is of which lock and of which thread: for how much
 * time it stands there. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_STACKS_H
#define TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_STACKS_H

#include <stdint.h>

#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/sampling/stack_sample.h"
#include "shared/tools/idmap.h"

#define LOCK_STACKS_MAX 4096

struct lock_stacks {
	/* For a thread at a lock the stack that stands for the most time: hash -> owned. */
	struct idmap heaviest;
};

void lock_stacks_init(struct lock_stacks *s);
void lock_stacks_done(struct lock_stacks *s);

/* Notes a sample with SAMPLE_WAKER that was counted for the stack of that number. */
void lock_stacks_add(struct lock_stacks *s, const struct stack_sample *sample, uint32_t number);

/* Sets `stack` of the wakers of a lock. */
void lock_stacks_find(const struct lock_stacks *s, struct lock_waited *lock);

#endif
