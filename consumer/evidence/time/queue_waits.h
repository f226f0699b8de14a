/* SPDX-License-Identifier: BSD-2-Clause */
/* queue_waits.h: the evidence of the signal `runq`: waits for a CPU. */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_QUEUE_WAITS_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_QUEUE_WAITS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/time/queue_blame.h"
#include "consumer/evidence/time/thread_pools.h"
#include "consumer/signals/signals.h"

#define QUEUE_LONGEST 10 /* threads, each with its longest wait */

struct queue_longest {
	uint64_t wait_ns, end_ns; /* CLOCK_MONOTONIC */
	uint32_t tid, tgid;
	char comm[COMM_BYTES];
};

struct queue_waits {
	struct thread_pools pools;		     /* owned */
	struct queue_longest longest[QUEUE_LONGEST]; /* the longest first */
	size_t n_longest;
	struct queue_blame blame; /* owned */
};

/* Finds the threads with the longest waits for a CPU, at most one wait of each thread. Pure. */
void queue_waits_find_longest(const struct thread_accounts *accounts, struct queue_waits *q);

/*
 * Returns the total time of waits for a CPU on which the session's own cgroup or its descendants
 * ran.
 */
uint64_t queue_waits_own_ns(const struct queue_waits *q);

/* Returns the total time of waits for a CPU on which other cgroups ran, named or not. */
uint64_t queue_waits_others_ns(const struct queue_waits *q);

/* Returns the queue waits of a session's signals, which the session owns; NULL if it has none. */
static inline const struct queue_waits *queue_waits_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_RUNQ);
}

#endif
