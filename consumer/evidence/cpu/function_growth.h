/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * function_growth.h: finds the function with the largest growth in its share of a service's CPU
 * time, from the baseline before a stall to the time after its trigger. A function's share includes
 * its callees, so an event loop, which calls everything at all times, does not grow. Report thread
 * only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_CPU_FUNCTION_GROWTH_H
#define TROCAR_CONSUMER_EVIDENCE_CPU_FUNCTION_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/naming/frame_name.h"

#define FUNCTION_GROWTH_ROWS 4096 /* slots for functions, of which three quarters are used */

/*
 * Below this number of baseline samples, shares prove nothing: a service that was idle has few.
 * Functions are then compared by CPU time per second, if the baseline was long enough for some
 * ticks. So they are where the service has at least twice its CPU time per second.
 */
#define FUNCTION_GROWTH_SAMPLES 30
#define FUNCTION_GROWTH_CALM_MS 1000

/* Smaller differences are no change: thousandths of the CPU time, or of one CPU. */
#define FUNCTION_GROWTH_LEAST 50

enum function_growth_time { GROWTH_CALM, GROWTH_STALLED, GROWTH_TIMES };

/* One function of one file. */
struct function_growth_row {
	const char *fn, *module;   /* borrowed; the key, by address; fn NULL: a free slot */
	uint64_t ns[GROWTH_TIMES]; /* CPU time of the function and its callees */
	uint64_t depth_ns;	   /* frames between it and the outermost one, times stalled ns */
	uint64_t stack;		   /* number of the last stack that was counted */
	const char *comm;	   /* borrowed; from the stack with the most stalled time */
	uint64_t comm_ns;
};

struct function_growth {
	struct function_growth_row *rows; /* owned */
	size_t count;
	uint64_t stacks;		/* stacks added so far */
	uint64_t ns[GROWTH_TIMES];	/* of all stacks */
	uint64_t samples[GROWTH_TIMES]; /* of all stacks */
};

/* Returns 0 or -ENOMEM. Release with function_growth_done. */
int function_growth_init(struct function_growth *g);
void function_growth_done(struct function_growth *g);

/*
 * Adds a stack with its `n` named frames. The stack and the frames must live until
 * function_growth_done. Stacks of the onset do not count, because the stall began at an unknown
 * time in it.
 */
void function_growth_add(struct function_growth *g, const struct stack *stack,
			 const struct named_frame *frames, size_t n);

/* The function that grew most. */
struct function_grown {
	const char *fn, *comm;
	unsigned int share_pct;		    /* share of the stalled CPU time */
	unsigned int calm_pct, stalled_pct; /* of the CPU time; with by_rate, of one CPU */
	bool by_rate;
	bool by_chance; /* this few samples differ by as much even without a change */
};

/*
 * Finds the function that grew most; the baseline lasted calm_ms, the stall stalled_ms. If several
 * functions grew nearly as much because one calls the other, chooses the callee. Returns false if
 * the baseline is too short to compare with, or if nothing grew.
 */
bool function_growth_find(const struct function_growth *g, uint64_t calm_ms, uint64_t stalled_ms,
			  struct function_grown *ret_grown);

/* Returns the name of the threads with most of a function's time, or NULL. */
const char *function_growth_comm(const struct function_growth *g, const char *fn,
				 const char *module);

#endif
