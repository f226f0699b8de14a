/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * looks.h: reads the iterator `looks`, which reports the waiting threads in the cgroups of
 * sessions, in passes. A pass is read in parts that share the turn of the main loop, so it delays
 * no drain. Passes come LOOKS_EVERY_NS apart, or further where they would take more of one CPU than
 * their budget; a requested pass comes at once. The recorder's passes, over the threads of all
 * watches, come with the drains that are made anyway. Main thread only.
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
 * The recorder's passes: so far apart at least, or further where they would take more than so many
 * thousandths of one CPU, but never further than LOOKS_RECORD_LATEST_NS.
 */
#define LOOKS_RECORD_EVERY_NS	  (4 * NSEC_PER_SEC)
#define LOOKS_RECORD_LATEST_NS	  (60 * NSEC_PER_SEC)
#define LOOKS_RECORD_BUDGET_MILLI 1
/*
 * Of so many stacks a pass may have mappings read and tables made; the others are as known. Where
 * each reading is a walk over all tasks, one walk reads those of all.
 */
#define LOOKS_RECORD_READS 64

/* One thread that waits. */
struct look_seen {
	const struct look_head *head;
	/* NULL, as the next two: it is unchanged since its last report, and has not run since. */
	const struct look_record *record;
	struct stack_sample *sample;
	const struct process *process; /* NULL: the table of processes was full */
};

/* One pass; its number grows by 1 from one to the next. */
struct look_pass {
	uint64_t number;
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns;   /* it took so far */
	uint64_t skipped;  /* passes that the budget left out between the one before and this */
	bool cut;	   /* it could not be read to its end */
	bool all;	   /* it is the recorder's: over the threads of all watches */
};

/* The recorder's passes since the start. */
struct looks_recorded {
	uint64_t passes, cut;
	uint64_t skipped; /* passes that the budget left out: a full LOOKS_RECORD_EVERY_NS each */
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
	uint64_t permille;	/* of one CPU: the budget */
	unsigned int holders;	/* sessions that want looks */
	struct look_pass pass;	/* the last, or the one that runs */
	int fd;			/* of the pass that runs; -1: none does */
	bool asked;		/* the next pass comes at once */
	bool forgets;		/* the next pass reports all threads with their stacks */
	bool counts;		/* the pass was due, not asked for: the budget pays */
	bool record;		/* the next pass may be the recorder's */
	bool steps;		/* looks_step runs: what it calls does not call it */
	uint64_t due_ns;	/* of the next pass */
	uint64_t record_due_ns; /* of the recorder's next */
	struct looks_recorded recorded;
	uint32_t walked; /* threads with stacks that the recorder's pass has reported */
	size_t at, have; /* what of `buffer` is not taken yet */
	_Alignas(8) uint8_t buffer[4 * LOOKS_READ_BYTES];
};

/* The passes of sessions may take so many thousandths of one CPU: 1 to 1000. */
void looks_init(struct looks *l, struct pinned_maps *pins, struct drain *drain, uint64_t permille,
		const struct looks_calls *calls, void *context);
void looks_done(struct looks *l);

/* Returns whether the iterator can be opened. */
bool looks_is_there(const struct looks *l);

/*
 * Has passes made until looks_drop. The next one, which begins in the next looks_step, reports all
 * threads with their stacks. Returns its number.
 */
uint64_t looks_hold(struct looks *l);
void looks_drop(struct looks *l);

/* Has a pass begin in the next looks_step, behind the one that runs. Returns its number. */
uint64_t looks_ask(struct looks *l);

/* Makes passes that begin from now on report all threads with their stacks again. */
void looks_forget(struct looks *l);

/*
 * Has the next looks_step begin a pass of the recorder if one is due. Call at each drain while
 * something is watched.
 */
void looks_record(struct looks *l);

/*
 * Reads on until the turn is over (turn.h), or nothing is due. Nothing where one of the calls that
 * it makes comes back here.
 */
void looks_step(struct looks *l);

/* Returns whether a pass was left in the middle, or is due now. */
bool looks_has_rest(const struct looks *l);

#endif
