/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_times.h: how long the threads of a session waited in which system call, by the map
 * `account_calls`, which has the waits that are over, and by the accounts of the threads, which
 * have those that are not. Main thread only; struct call_times belongs to the session's result.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_CALL_TIMES_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_CALL_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/time/thread_accounts.h"
#include "consumer/signals/signals.h"

/* One system call. */
struct call_time {
	uint32_t slot;		 /* in a reading of the map */
	uint32_t call;		 /* its number, or enum account_call */
	uint64_t waits, open;	 /* that were over, and were not */
	uint64_t wait_ns;	 /* of both, within the session */
	uint64_t over_ns;	 /* of those that were over, from their begin on */
	uint64_t longest_ns;	 /* 0: not known */
	uint64_t longest_end_ns; /* 0: it is open */
	uint32_t longest_tid, longest_tgid;
	char longest_comm[COMM_BYTES];
	uint32_t buckets[QUEUE_BUCKETS]; /* of `waits` (time_histogram.h) */
};

struct call_times {
	struct call_time *items; /* owned */
	size_t count;
};

/* Reads the counts of the map, sorted by slot and call. 0 or -errno. */
int call_times_read(const struct pinned_maps *pins, struct call_times *ret_times);

/* Removes the elements of the reading from the map. 0 or -errno. */
int call_times_empty(const struct pinned_maps *pins, const struct call_times *times);

/*
 * Makes one element of each call that threads of the session on `slot` waited in since the begin,
 * the most time first. 0 or -errno.
 */
int call_times_end(const struct pinned_maps *pins, uint32_t slot, const struct call_times *before,
		   const struct thread_baseline *begin, const struct thread_accounts *accounts,
		   struct call_times *ret_times);

/* Frees its members. */
void call_times_done(struct call_times *times);

/* Returns those of a session's signals; the session owns them. NULL: it has none. */
static inline const struct call_times *call_times_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_SYSCALL);
}

#endif
