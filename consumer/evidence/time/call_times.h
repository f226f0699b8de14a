/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_times.h: the waits of a session's threads by system call. The map `account_calls` has the
 * completed waits, and the accounts of the threads have the unfinished ones. Main thread only;
 * struct call_times belongs to the session's result.
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
	uint32_t slot;		 /* only in a reading of the map */
	uint32_t call;		 /* its number, or enum account_call */
	uint64_t waits, open;	 /* completed waits, and unfinished ones */
	uint64_t wait_ns;	 /* of completed and unfinished waits, within the session */
	uint64_t over_ns;	 /* of completed waits, from their begin on */
	uint64_t longest_ns;	 /* 0: unknown */
	uint64_t longest_end_ns; /* 0: unfinished */
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
 * Makes one element for each system call that threads of the session on `slot` waited in since the
 * begin, the most time first. Returns 0 or -errno. Release with call_times_done.
 */
int call_times_end(const struct pinned_maps *pins, uint32_t slot, const struct call_times *before,
		   const struct thread_baseline *begin, const struct thread_accounts *accounts,
		   struct call_times *ret_times);

/* Frees its members. */
void call_times_done(struct call_times *times);

/* Returns the call times of a session's signals, which the session owns; NULL if it has none. */
static inline const struct call_times *call_times_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_SYSCALL);
}

#endif
