/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mappings_queue.h: the processes that wait for their mappings on kernels that cannot find a
 * process by its pid (before Linux 6.7): one walk over all tasks reads the mappings of all waiting
 * processes (mappings_walk.h). On other kernels no process waits here. Main thread only.
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

#define MAPPINGS_QUEUE_WALKS 3 /* walks that may miss a living process */

struct mappings_queue {
	struct processes *processes; /* borrowed, as the next */
	struct process_mappings *mappings;
	struct mappings_walk walk;
	struct process *first, *last; /* processes that the next walk asks for */
	size_t count;
	uint64_t full;	 /* walks that had no room for all waiting processes */
	uint64_t failed; /* processes given up after MAPPINGS_QUEUE_WALKS */
};

void mappings_queue_init(struct mappings_queue *q, struct processes *processes,
			 struct process_mappings *mappings);
void mappings_queue_done(struct mappings_queue *q);

/* Returns whether this kernel needs the walk, and so mappings_queue_ask. */
bool mappings_queue_is_used(const struct mappings_queue *q);

/*
 * Requests mappings of `p` that are read at since_ns (CLOCK_MONOTONIC) or later. If `p` already
 * waits, the later of both times counts.
 */
void mappings_queue_ask(struct mappings_queue *q, struct process *p, uint64_t since_ns);

/* Removes `p` from the queue. Call when it has ended or left. */
void mappings_queue_leave(struct mappings_queue *q, struct process *p);

/* Returns whether a process waits. */
bool mappings_queue_has_rest(const struct mappings_queue *q);

/*
 * Continues the walk until until_ns (clock_mono_ns). Returns a process that no longer waits: its
 * mappings were read (process_mappings_take), or cannot be read. Returns NULL if the time is over,
 * or no process waits.
 */
struct process *mappings_queue_next(struct mappings_queue *q, uint64_t until_ns);

/* Writes the object `mappings_queue` of the status method. */
void mappings_queue_write_status(const struct mappings_queue *q, struct jsonw *w);

#endif
