/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_stacks.h: stacks of waiting threads, without duplicates, for callers that keep many waits: a
 * thousand threads of a pool share one. A stack holds the modules of its frames (symbols_hold).
 * Main thread only.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_WAIT_STACKS_H
#define TROCAR_CONSUMER_SAMPLING_WAIT_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/sampling/stack_sample.h"
#include "shared/tools/idmap.h"

/* A stack without thread and begin of the wait: these members of `sample` are 0. */
struct wait_stack {
	struct wait_stack *next; /* same hash */
	uint64_t hash;
	uint64_t place; /* hash of the frames and the awaited object, for any thread */
	uint64_t refs;
	struct look_on on;	    /* plain (wait_objects.h) */
	struct stack_sample sample; /* with its frames */
};

/* Release with wait_stacks_done after all references are dropped. */
struct wait_stacks {
	struct idmap by_hash; /* hash -> first stack, owned */
	size_t bytes;	      /* of all stacks */
};

void wait_stacks_init(struct wait_stacks *s, size_t max);
void wait_stacks_done(struct wait_stacks *s);

/*
 * Returns a reference to the stack of `sample`, of a thread that waits on `on`; NULL without
 * memory, or if there are `max` hashes.
 */
struct wait_stack *wait_stacks_get(struct wait_stacks *s, const struct stack_sample *sample,
				   const struct look_on *on);

/* Returns one more reference. */
struct wait_stack *wait_stack_ref(struct wait_stack *stack);

/* Drops a reference. A caller that still needs the modules must copy their frames before. */
void wait_stacks_drop(struct wait_stacks *s, struct wait_stack *stack);

#endif
