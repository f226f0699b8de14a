/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_recorder.h: keeps the waits of threads before a trigger, from the recorder's sampling passes
 * (looks.h): for each thread of a watch, its wait in the last pass, and earlier waits that ended in
 * the last half minute. A wait spans the samples that found it, plus half of the time to the
 * adjacent ones. Limited: completed waits are evicted, the oldest first. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_WAIT_RECORDER_H
#define TROCAR_CONSUMER_SAMPLING_WAIT_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/sampling/looks.h"
#include "consumer/sampling/wait_stacks.h"
#include "shared/tools/idmap.h"

#define WAIT_RECORDER_BYTES  (4u << 20)
#define WAIT_RECORDER_PASSES 16
#define WAIT_RECORDER_LOSSES 8 /* per slot: as many passes as the longest pre-roll has */

struct recorded_wait {
	struct recorded_wait *next; /* of completed waits: the next newer one */
	struct wait_stack *stack;   /* a reference */
	uint64_t from_ns;	    /* CLOCK_MONOTONIC, as the next two */
	uint64_t to_ns;		    /* of a completed wait */
	uint64_t first_ns, seen_ns; /* first and last sample of the wait */
	uint64_t before_ns;	    /* the last sample before it, without the wait; 0: none */
	uint64_t switches;	    /* the thread's, in this wait */
	uint64_t pass;		    /* number of the pass of the last sample */
	uint32_t tid;
};

/* A slot's waits that were dropped. */
struct wait_losses {
	uint32_t epoch, last;
	struct {
		uint64_t ns; /* end of the newest of them */
		uint64_t count;
	} at[WAIT_RECORDER_LOSSES];
};

/* A sampling pass of the recorder. */
struct recorded_pass {
	uint64_t number;   /* struct look_pass */
	uint64_t began_ns; /* 0: none */
	bool cut;
};

/* Release with wait_recorder_done. */
struct wait_recorder {
	struct wait_stacks stacks;
	struct idmap threads;		       /* tid -> its open wait, owned */
	struct idmap losses;		       /* slot, plus 1 -> struct wait_losses, owned */
	struct recorded_wait *oldest, *newest; /* completed waits */
	size_t over;
	size_t max_bytes;
	uint64_t evicted; /* evicted waits, and threads without space, since the start */
	bool unknown;	  /* a thread was reported as unchanged, but is unknown here */
	uint32_t last;	  /* index of the last pass */
	struct recorded_pass passes[WAIT_RECORDER_PASSES];
};

void wait_recorder_init(struct wait_recorder *r, size_t max_bytes);

/* Drops everything. The recorder can be used again, as after wait_recorder_init. */
void wait_recorder_done(struct wait_recorder *r);

/* Returns the used memory in bytes. */
size_t wait_recorder_bytes(const struct wait_recorder *r);

/*
 * Takes a thread that a pass reported. Reports of a session's own pass belong to the session: a
 * wait that ends there is not kept.
 */
void wait_recorder_seen(struct wait_recorder *r, const struct look_pass *pass,
			const struct look_seen *seen);

/*
 * Ends a pass: ends the waits of threads that a complete pass of the recorder did not report.
 * Returns true if the next pass has to report all threads again (looks_forget), because a thread is
 * unknown and there is space for it.
 */
bool wait_recorder_passed(struct wait_recorder *r, const struct look_pass *pass);

/* Frees the waits that ended before `before_ns`. */
void wait_recorder_expire(struct wait_recorder *r, uint64_t before_ns);

/*
 * Calls `call` for each wait of any slot that had not ended at from_ns. `open` waits are those in
 * which the last sample found their threads; they have no to_ns.
 */
void wait_recorder_each(const struct wait_recorder *r, uint64_t from_ns,
			void (*call)(void *context, const struct recorded_wait *wait, bool open),
			void *context);

/* Returns the recorder's last pass; NULL if there was none. */
const struct recorded_pass *wait_recorder_last(const struct wait_recorder *r);

/* Returns the number of waits of the slot that ended since from_ns and were dropped. */
uint64_t wait_recorder_lost(const struct wait_recorder *r, uint32_t slot, uint32_t epoch,
			    uint64_t from_ns);

/*
 * Returns the number of the recorder's passes that began in [from_ns, to_ns), and sets *ret_cut to
 * the number that did not reach their end.
 */
uint64_t wait_recorder_count(const struct wait_recorder *r, uint64_t from_ns, uint64_t to_ns,
			     uint64_t *ret_cut);

#endif
