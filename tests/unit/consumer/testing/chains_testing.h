/* SPDX-License-Identifier: BSD-2-Clause */
/* chains_testing.h: threads and their long waits, from which chains are made. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_CHAINS_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_CHAINS_TESTING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/answer/chains.h"
#include "consumer/sampling/wait_kind.h"
#include "shared/tools/clock.h"

#define CHAINS_TESTING_MS    NSEC_PER_MSEC
#define CHAINS_TESTING_WAITS 8192
#define CHAINS_TESTING_TGID  77

/* What chains are made from; all 0: nothing. */
struct chains_testing {
	struct long_wait waits[CHAINS_TESTING_WAITS];
	struct long_waits_thread threads[512];
	struct long_waits all;
};

/* Adds a thread of process `tgid` that lived so long; they come by tid. */
static inline struct long_waits_thread *chains_testing_thread(struct chains_testing *t,
							      uint32_t tid, uint32_t tgid,
							      const char *comm, uint64_t wall_ms)
{
	struct long_waits_thread *thread = &t->threads[t->all.n_threads++];

	*thread = (struct long_waits_thread){ .tid = tid,
					      .tgid = tgid,
					      .wall_ns = wall_ms * CHAINS_TESTING_MS };
	snprintf(thread->comm, sizeof(thread->comm), "%s", comm);
	t->all.threads = t->threads;
	return thread;
}

/* Adds a wait from `from_ms` to `to_ms` that thread `by` ended; they come by tid, then by time. */
static inline struct long_wait *chains_testing_wait(struct chains_testing *t, uint32_t tid,
						    enum account_part part, uint64_t from_ms,
						    uint64_t to_ms, uint32_t by)
{
	struct long_wait *w = &t->waits[t->all.count++];

	*w = (struct long_wait){ .begin_ns = from_ms * CHAINS_TESTING_MS,
				 .end_ns = to_ms * CHAINS_TESTING_MS,
				 .tid = tid,
				 .tgid = CHAINS_TESTING_TGID,
				 .by_tid = by,
				 .part = (uint8_t)part,
				 .end = by ? LONG_WAIT_THREAD : LONG_WAIT_INTERRUPT };
	t->all.items = t->waits;
	return w;
}

#endif
