/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mappings_reread.h: schedules a second read of a process's mappings: when its image was new at the
 * first read, and when a stack leaves the mappings just after a read. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_MAPPINGS_REREAD_H
#define TROCAR_CONSUMER_PROCESS_MAPPINGS_REREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/process/mappings_queue.h"
#include "consumer/process/process.h"
#include "consumer/process/process_mappings.h"

/* Processes noted at a time; a later sample shows that a further one needs a read. */
#define MAPPINGS_REREAD_MAX 64

struct mappings_reread {
	struct processes *processes;	   /* borrowed */
	struct process_mappings *mappings; /* borrowed */
	struct mappings_queue *queue;	   /* borrowed */
	struct process_key keys[MAPPINGS_REREAD_MAX];
	size_t count;
};

void mappings_reread_init(struct mappings_reread *r, struct processes *processes,
			  struct process_mappings *mappings, struct mappings_queue *queue);

/*
 * Call after reading p's mappings. If execve(2) was less than YOUNG_NS (30 ms) before, schedules a
 * second read with mappings_reread_settle: ld.so may not have mapped all libraries yet.
 */
void mappings_reread_young(struct mappings_reread *r, const struct process *p);

/*
 * Call when a stack of `p` at time_ns has left the mappings that its table has. Reads the mappings
 * again: at once, or in mappings_reread_settle if the last read was too short ago; where the kernel
 * has to be walked, asks for them in the queue.
 */
void mappings_reread_unmapped(struct mappings_reread *r, struct process *p, uint64_t time_ns);

/*
 * Reads the mappings of the processes that were noted, of one at least, until the turn is over, or
 * asks for them in the queue.
 * Returns whether some are left for the next call.
 */
bool mappings_reread_settle(struct mappings_reread *r);

#endif
