/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * function_growth.h: finds the function with the part of a service's CPU time that grew most from
 * the calm time before a stall to the time after its trigger. A function's part is all that ran in
 * it or was called by it, so an event loop, in which everything runs at all times, does not grow.
 * Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_CPU_FUNCTION_GROWTH_H
#define TROCAR_CONSUMER_EVIDENCE_CPU_FUNCTION_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/naming/frame_name.h"

#define FUNCTION_GROWTH_ROWS 4096 /* places for functions; three quarters of them are used */

/*
 * With fewer calm samples shares prove nothing: a service that was idle has few. Then functions are
 * compared by CPU time per second, if the calm time was long enough for some ticks.
 */
#define FUNCTION_GROWTH_SAMPLES 30
#define FUNCTION_GROWTH_CALM_MS 1000

/* Smaller differences are no change: thousandths of the CPU time, or of one CPU. */
#define FUNCTION_GROWTH_LEAST 50

enum function_growth_time { GROWTH_CALM, GROWTH_STALLED, GROWTH_TIMES };

/* One function of one file. */
struct function_growth_row {
	const char *fn, *module;   /* borrowed; the key, by address; fn NULL: a free place */
	uint64_t ns[GROWTH_TIMES]; /* CPU time in it and below */
	uint64_t depth_ns;	   /* frames below it to the outermost one, by stalled ns */
	uint64_t stack;		   /* number of the last stack that counted */
	const char *comm;	   /* borrowed: of the stack with the most stalled time */
	uint64_t comm_ns;
};

struct function_growth {
	struct function_growth_row *rows; /* owned */
	size_t count;
	uint64_t stacks;		/* added so far */
	uint64_t ns[GROWTH_TIMES];	/* of all stacks */
	uint64_t samples[GROWTH_TIMES]; /* of all stacks */
};

/* Returns 0 or -ENOMEM. */
int function_growth_init(struct function_growth *g);
void function_growth_done(struct function_growth *g);

/*
 * Adds a stack with its `n` named frames, which with the stack must stay until
 * function_growth_done. Those of the onset do not count: the stall had begun in it at an unknown
 * time.
 */
void function_growth_add(struct function_growth *g, const struct stack *stack,
			 const struct named_frame *frames, size_t n);

/* What grew most. */
struct function_grown {
	const char *fn, *comm;
	unsigned int share_pct;		    /* of the CPU time that was stalled */
	unsigned int calm_pct, stalled_pct; /* of the CPU time; with by_rate of one CPU */
	bool by_rate;
	bool by_chance; /* so few samples differ by as much where nothing has changed */
};

/*
 * Finds it; the calm time was calm_ms long, that of the stall stalled_ms. Of functions that grew
 * nearly as much, because one calls the other, takes the one that is called. False when there is
 * too little calm time to compare with, or nothing grew.
 */
bool function_growth_find(const struct function_growth *g, uint64_t calm_ms, uint64_t stalled_ms,
			  struct function_grown *ret_grown);

/* Returns the thread's name that most of a function's time has, or NULL. */
const char *function_growth_comm(const struct function_growth *g, const char *fn,
				 const char *module);

#endif
