/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mappings_queue.h: the processes that wait for their mappings where the kernel finds no process by
 * its pid (before Linux 6.7): one walk over all tasks reads those of all waiting processes
 * (mappings_walk.h). Elsewhere none waits here. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_MAPPINGS_QUEUE_H
#define TROCAR_CONSUMER_PROCESS_MAPPINGS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/mappings/mappings_walk.h"
#include "consumer/process/process.h"
#include "consumer/process/process_mappings.h"

struct jsonw;

#define MAPPINGS_QUEUE_WALKS 3 /* walks for a process that lives and is not listed */

struct mappings_queue {
	struct processes *processes; /* borrowed, as the next */
	struct process_mappings *mappings;
	struct mappings_walk walk;
	struct process *first, *last; /* those that the next walk asks for */
	size_t count;
	uint64_t full;	 /* walks that had no room for all waiting processes */
	uint64_t failed; /* processes that were given up after MAPPINGS_QUEUE_WALKS */
};

void mappings_queue_init(struct mappings_queue *q, struct processes *processes,
			 struct process_mappings *mappings);
void mappings_queue_done(struct mappings_queue *q);

/* Whether this kernel has to be walked, so that mappings_queue_ask is of use. */
bool mappings_queue_is_used(const struct mappings_queue *q);

/*
 * Asks for mappings of `p` that are read at since_ns (CLOCK_MONOTONIC) or later. One that waits
 * already waits for the later of both.
 */
void mappings_queue_ask(struct mappings_queue *q, struct process *p, uint64_t since_ns);

/* Call when `p` has ended or left. */
void mappings_queue_leave(struct mappings_queue *q, struct process *p);

/* Whether a process waits. */
bool mappings_queue_has_rest(const struct mappings_queue *q);

/*
 * Goes on with the walk until until_ns (clock_mono_ns). Returns a process that waits no longer: its
 * mappings were read (process_mappings_take), or cannot be read. NULL: the time is over, or none
 * waits.
 */
struct process *mappings_queue_next(struct mappings_queue *q, uint64_t until_ns);

/* Writes the object `mappings_queue` of the status method. */
void mappings_queue_write_status(const struct mappings_queue *q, struct jsonw *w);

#endif
