/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_recorder.h: keeps the threads that waited before a trigger, by the recorder's looks
 * (looks.h): of each thread of a watch the wait in which the last look found it, and the waits
 * before it that ended in the last half minute. A wait lasts from look to look, and half of the
 * time to the looks around it. Bounded: waits that are over give way, the oldest first. Main thread
 * only.
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
	struct recorded_wait *next; /* of those that are over: the next newer one */
	struct wait_stack *stack;   /* a reference */
	uint64_t from_ns;	    /* CLOCK_MONOTONIC, as the next two */
	uint64_t to_ns;		    /* of one that is over */
	uint64_t first_ns, seen_ns; /* when a look first and last found it */
	uint64_t before_ns;	    /* the last look that did not; 0: none */
	uint64_t switches;	    /* the thread's, in this wait */
	uint64_t pass;		    /* number of that look's pass */
	uint32_t tid;
};

/* What was not kept of a slot's waits. */
struct wait_losses {
	uint32_t epoch, last;
	struct {
		uint64_t ns; /* when the newest of them were over */
		uint64_t count;
	} at[WAIT_RECORDER_LOSSES];
};

/* A pass of the recorder. */
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
	struct recorded_wait *oldest, *newest; /* that are over */
	size_t over;
	size_t max_bytes;
	uint64_t evicted; /* waits that gave way, and threads without room, since the start */
	bool unknown;	  /* a thread is as before of which nothing is known */
	uint32_t last;	  /* index of the last pass */
	struct recorded_pass passes[WAIT_RECORDER_PASSES];
};

void wait_recorder_init(struct wait_recorder *r, size_t max_bytes);

/* Drops all. It can be used again, as after wait_recorder_init. */
void wait_recorder_done(struct wait_recorder *r);

/* Returns the memory that it takes. */
size_t wait_recorder_bytes(const struct wait_recorder *r);

/*
 * Takes a thread that a pass reported. The reports of a session's own pass are the session's: then
 * the wait that it ends is not kept.
 */
void wait_recorder_seen(struct wait_recorder *r, const struct look_pass *pass,
			const struct look_seen *seen);

/*
 * A pass has ended: ends the waits of threads that a whole one of the recorder did not report.
 * Returns true when the next pass has to report all threads again (looks_forget): something is not
 * known, and there is room for it.
 */
bool wait_recorder_passed(struct wait_recorder *r, const struct look_pass *pass);

/* Frees the waits that were over before `before_ns`. */
void wait_recorder_expire(struct wait_recorder *r, uint64_t before_ns);

/*
 * Calls `call` for each wait that was not over at from_ns, of any slot: `open` are those in which
 * the last look found their threads, and have no to_ns.
 */
void wait_recorder_each(const struct wait_recorder *r, uint64_t from_ns,
			void (*call)(void *context, const struct recorded_wait *wait, bool open),
			void *context);

/* Returns the recorder's last pass; NULL: there was none. */
const struct recorded_pass *wait_recorder_last(const struct wait_recorder *r);

/* Returns how many waits of the slot that ended since from_ns were not kept. */
uint64_t wait_recorder_lost(const struct wait_recorder *r, uint32_t slot, uint32_t epoch,
			    uint64_t from_ns);

/*
 * Counts the recorder's passes that began in [from_ns, to_ns); *ret_cut of them did not come to
 * their end.
 */
uint64_t wait_recorder_count(const struct wait_recorder *r, uint64_t from_ns, uint64_t to_ns,
			     uint64_t *ret_cut);

#endif
