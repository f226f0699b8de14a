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

/*
 * Processes that can be scheduled at once; for any other process, a later sample shows the need
 * again.
 */
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
 * Call after reading p's mappings. If execve(2) was less than YOUNG_NS (30 ms) ago, schedules a
 * second read in mappings_reread_settle: ld.so may not have mapped all libraries yet.
 */
void mappings_reread_young(struct mappings_reread *r, const struct process *p);

/*
 * Call when a stack of `p` at time_ns has left the mappings of its table. Reads the mappings again:
 * at once, or in mappings_reread_settle if the last read was too recent; if the kernel needs a
 * walk, requests them in the queue.
 */
void mappings_reread_unmapped(struct mappings_reread *r, struct process *p, uint64_t time_ns);

/*
 * Reads the mappings of the scheduled processes, at least of one, until the time slice is over, or
 * requests them in the queue. Returns whether some are left for the next call.
 */
bool mappings_reread_settle(struct mappings_reread *r);

#endif
