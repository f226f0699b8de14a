/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread_pools.h: groups a session's threads into pools. Threads of one process with names that
 * differ only in digits are a pool ("worker-3" and "worker-12" are in "worker-"). Pure.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_THREAD_POOLS_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_THREAD_POOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/time/queue_histogram.h"
#include "consumer/evidence/time/thread_accounts.h"
#include "consumer/signals/signals.h"

#define THREAD_POOLS_NAMED 32 /* the others are one pool without a name */

/* The sums over the threads of one pool; each member is as in struct thread_account. */
struct thread_pool {
	uint32_t tgid; /* 0: of the unnamed pools */
	uint64_t start_ns;
	char name[COMM_BYTES]; /* without digits; empty: the names have nothing else */
	uint64_t pools;	       /* number of unnamed pools */
	uint64_t threads, born, arrived, ended, left;
	uint64_t wall_ns, unaccounted_ns, open_ns;
	uint64_t part_ns[ACCOUNT_PARTS_];
	uint64_t longest_ns;
	uint32_t longest_kind, longest_tid;
	char longest_comm[COMM_BYTES];
	struct queue_histogram queue;
};

struct thread_pools {
	struct thread_pool *items; /* owned; the most time first, the unnamed one last */
	size_t count;
	struct thread_pool all; /* their sum */
	uint64_t late_ns;	/* the accounts began this late after the session */
};

/* Groups the threads and reorders them. Returns 0 or -ENOMEM. Release with thread_pools_done. */
int thread_pools_make(struct thread_accounts *accounts, struct thread_pools *ret_pools);
void thread_pools_done(struct thread_pools *pools);

/*
 * Finds the pool of a thread by its process and name, or the unnamed pool if the thread's pool is
 * not named. start_ns is that of the process; 0: any process with this tgid. Sets *ret_index to the
 * pool's index in `items`; returns false if there is no such pool.
 */
bool thread_pools_find(const struct thread_pools *pools, uint32_t tgid, uint64_t start_ns,
		       const char *comm, size_t *ret_index);

/* Returns the total of the waits: every part but running and queue. */
uint64_t thread_pools_waited_ns(const struct thread_pool *pool);

/* Returns the word for a part in the lines: "running", "lock", ... */
const char *thread_pools_part(enum account_part part);

/* Returns the pools of a session's signals, which the session owns; NULL if it has none. */
static inline const struct thread_pools *
thread_pools_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_POOLS);
}

#endif
