/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread_pools.h: groups a session's threads: those of one process with the same name but for
 * digits are a pool ("worker-3" and "worker-12" are in "worker-"). Pure.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_THREAD_POOLS_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_THREAD_POOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/time/queue_histogram.h"
#include "consumer/evidence/time/thread_accounts.h"
#include "consumer/signals/signals.h"

#define THREAD_POOLS_NAMED 32 /* the rest is one pool without a name */

/* The sums over the threads of one pool; each member is as in struct thread_account. */
struct thread_pool {
	uint32_t tgid; /* 0: of the pools that are not named */
	uint64_t start_ns;
	char name[COMM_BYTES]; /* without digits; empty: the names have nothing else */
	uint64_t pools;	       /* how many these are */
	uint64_t threads, born, arrived, ended, left;
	uint64_t wall_ns, unaccounted_ns, open_ns;
	uint64_t part_ns[ACCOUNT_PARTS_];
	uint64_t longest_ns;
	uint32_t longest_kind, longest_tid;
	char longest_comm[COMM_BYTES];
	struct queue_histogram queue;
};

struct thread_pools {
	struct thread_pool *items; /* owned; those with the most time first, the unnamed one last */
	size_t count;
	struct thread_pool all; /* their sum */
	uint64_t late_ns;	/* how long after the session the accounts began */
};

/* Groups the threads, and changes their order. 0 or -ENOMEM. */
int thread_pools_make(struct thread_accounts *accounts, struct thread_pools *ret_pools);
void thread_pools_done(struct thread_pools *pools);

/*
 * Finds the pool of a thread of that process and name; the unnamed one when it has no pool of its
 * own. start_ns: of the process; 0: any of that number. Sets its index in items; false when there
 * is none.
 */
bool thread_pools_find(const struct thread_pools *pools, uint32_t tgid, uint64_t start_ns,
		       const char *comm, size_t *ret_index);

/* Returns the sum of the waits: every part but running and queue. */
uint64_t thread_pools_waited_ns(const struct thread_pool *pool);

/* Returns the word of a part in the lines: "running", "lock", ... */
const char *thread_pools_part(enum account_part part);

/* Returns those of a session's signals; the session owns them. NULL: it has none. */
static inline const struct thread_pools *
thread_pools_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_POOLS);
}

#endif
