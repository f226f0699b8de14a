/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * looks.h: reads the iterator `looks`, which reports the waiting threads in the cgroups of
 * sessions, in sampling passes. A pass is read in parts that share the main loop's time slice, so
 * it delays no drain. Passes are LOOKS_EVERY_NS apart, or further if they would take more of one
 * CPU than their budget; a requested pass starts at once. The recorder's passes, over the threads
 * of all watches, are made with the regular drains. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_LOOKS_H
#define TROCAR_CONSUMER_SAMPLING_LOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/sampling/stack_sample.h"
#include "shared/abi/abi.h"
#include "shared/tools/macro.h"

struct drain;
struct pinned_maps;
struct process;

#define LOOKS_EVERY_NS (50 * NSEC_PER_MSEC)

/*
 * The least interval of the recorder's passes. It is longer if they would take more than
 * LOOKS_RECORD_BUDGET_MILLI thousandths of one CPU, but never longer than LOOKS_RECORD_LATEST_NS.
 */
#define LOOKS_RECORD_EVERY_NS	  (4 * NSEC_PER_SEC)
#define LOOKS_RECORD_LATEST_NS	  (60 * NSEC_PER_SEC)
#define LOOKS_RECORD_BUDGET_MILLI 1
/*
 * For this number of stacks a pass may have mappings read and tables made; the other stacks use the
 * known state. If each reading is a walk over all tasks, one walk reads all mappings.
 */
#define LOOKS_RECORD_READS 64

/* A waiting thread. */
struct look_seen {
	const struct look_head *head;
	/*
	 * NULL, as the next two, if the thread is unchanged since its last report and has not run
	 * since.
	 */
	const struct look_record *record;
	struct stack_sample *sample;
	const struct process *process; /* NULL: the table of processes was full */
};

/* One sampling pass; its number is one more than that of the pass before. */
struct look_pass {
	uint64_t number;
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns;   /* CPU time so far */
	uint64_t skipped;  /* passes skipped by the budget since the pass before */
	bool cut;	   /* not read to its end */
	bool all;	   /* a pass of the recorder, over the threads of all watches */
};

/* The recorder's passes since the start. */
struct looks_recorded {
	uint64_t passes, cut;
	uint64_t skipped; /* skipped by the budget: a full LOOKS_RECORD_EVERY_NS each */
	uint64_t cpu_ns;
};

struct looks_calls {
	/* A pass reported a thread; its nearest watch has slot `slot`. */
	void (*seen)(void *context, uint32_t slot, const struct look_pass *pass,
		     const struct look_seen *seen);
	void (*passed)(void *context, const struct look_pass *pass);
};

/* Its owner calls looks_init, and looks_done at the end. */
struct looks {
	struct pinned_maps *pins; /* borrowed, as the next three */
	struct drain *drain;
	const struct looks_calls *calls;
	void *context;		/* the first argument of the calls */
	uint64_t permille;	/* budget, in thousandths of one CPU */
	unsigned int holders;	/* sessions that hold periodic passes */
	struct look_pass pass;	/* the last pass, or the running one */
	int fd;			/* of the running pass; -1: none */
	bool asked;		/* the next pass starts at once */
	bool held_again;	/* the next pass on request reads the holders again */
	bool forgets;		/* the next pass reports all threads with their stacks */
	bool counts;		/* the pass was due, not requested: the budget pays for it */
	bool record;		/* the next pass may be the recorder's */
	bool steps;		/* looks_step runs; its callbacks must not run it again */
	uint64_t due_ns;	/* of the next pass */
	uint64_t record_due_ns; /* of the recorder's next pass */
	struct looks_recorded recorded;
	uint32_t walked; /* threads with stacks reported in the recorder's pass */
	size_t at, have; /* unread part of `buffer` */
	_Alignas(8) uint8_t buffer[4 * LOOKS_READ_BYTES];
};

/* Initialises `l`. The passes of sessions may take `permille` thousandths of one CPU: 1 to 1000. */
void looks_init(struct looks *l, struct pinned_maps *pins, struct drain *drain, uint64_t permille,
		const struct looks_calls *calls, void *context);
void looks_done(struct looks *l);

/* Returns whether the iterator can be opened. */
bool looks_is_there(const struct looks *l);

/*
 * Starts periodic passes; looks_drop stops them. The next one, which starts in the next looks_step,
 * reports all threads with their stacks. Returns its number.
 */
uint64_t looks_hold(struct looks *l);
void looks_drop(struct looks *l);

/*
 * Requests a pass, which starts in the next looks_step, after the running one. Returns its number.
 */
uint64_t looks_ask(struct looks *l);

/*
 * As looks_ask, for the last pass of a session: it reads the holders of locks again, all in one
 * pass.
 */
uint64_t looks_ask_last(struct looks *l);

/* Makes the next pass report all threads with their stacks again, even unchanged ones. */
void looks_forget(struct looks *l);

/*
 * Makes the next looks_step start a pass of the recorder if one is due. Call at each drain while
 * anything is watched.
 */
void looks_record(struct looks *l);

/*
 * Reads passes until the time slice is over (turn.h), or until nothing is due. Does nothing if one
 * of its own callbacks calls it.
 */
void looks_step(struct looks *l);

/* Returns whether a pass is unfinished, or is due now. */
bool looks_has_rest(const struct looks *l);

#endif
