/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * long_waits.h: the single long waits of a session's threads, including those that were unfinished
 * at its end, and the whole account of each of these threads: the input of wait chains. Read in
 * slices, so that no iteration of the main loop takes long.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_LOCKS_LONG_WAITS_H
#define TROCAR_CONSUMER_EVIDENCE_LOCKS_LONG_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/locks/lock_maps.h"
#include "consumer/evidence/time/thread_accounts.h"
#include "consumer/sampling/stack_table.h"
#include "consumer/signals/ledger.h"
#include "shared/abi/abi.h"

struct pinned_maps;

/* Identity and account of a waiting thread in the session. */
struct long_waits_thread {
	uint32_t tid, tgid;
	uint64_t start_ns; /* of its process, as in struct process_key */
	uint64_t wall_ns;
	uint64_t part_ns[ACCOUNT_PARTS_];
	char comm[COMM_BYTES];
};

struct long_waits {
	struct long_wait *items; /* owned; by thread, then by time; clipped to the session */
	size_t count;
	struct long_waits_thread *threads; /* owned; by tid; threads that have an account */
	size_t n_threads;
	struct ledger ledger; /* each wait is an attempt */
	uint64_t lost_ns;     /* duration of the waits that did not fit into the kernel's table */
	struct stack_budget *budget; /* borrowed; NULL: no budget */
	size_t charged;		     /* bytes taken from it */
};

/* The sources of a session's waits; all borrowed. */
struct long_waits_source {
	const struct pinned_maps *pins;
	uint32_t slot;
	uint64_t start_ns;			/* of the session */
	const struct thread_accounts *accounts; /* read at its end */
	const struct lock_record *locks;	/* unfinished lock waits, by tid */
	size_t n_locks;
	struct slot_locks lost; /* since the session's begin */
	struct stack_budget *budget;
};

/* An unfinished reading of the table. */
struct long_waits_reading;

/* Begins to read the table. Returns NULL without memory. */
struct long_waits_reading *long_waits_open(void);

/*
 * Reads until `until_ns` (clock_mono_ns). Returns 1 if there is more, 0 if the reading is complete,
 * or -errno.
 */
int long_waits_step(struct long_waits_reading *r, const struct pinned_maps *pins, uint32_t slot,
		    uint64_t until_ns);

/*
 * Reads the rest, makes the waits of a session, and frees `reading`. Call while the slot still
 * names the session. If the budget is exhausted, all waits count as lost. Returns 0 or -errno;
 * after an error there is nothing to release.
 */
int long_waits_take(struct long_waits_reading *reading, const struct long_waits_source *source,
		    struct long_waits *ret_waits);

/* Frees a reading that was not passed to long_waits_take; NULL is allowed. */
void long_waits_close(struct long_waits_reading *r);

void long_waits_done(struct long_waits *w);

/* Returns the account of a thread; NULL if it has none. */
const struct long_waits_thread *long_waits_thread(const struct long_waits *w, uint32_t tid);

/* Returns the word for the waker of a wait: "thread", ... */
const char *long_waits_end(uint32_t end);

#endif
