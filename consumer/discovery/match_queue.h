/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * match_queue.h: writes process.match, for which it reads the process's mappings. A turn of the
 * main loop spends no more than its time on that (turn.h); matched processes beyond it wait in a
 * queue for the next turns. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_MATCH_QUEUE_H
#define TROCAR_CONSUMER_DISCOVERY_MATCH_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct discovery;
struct process;

struct match_queue {
	struct process *first, *last;
	size_t count;
	uint64_t held_ns; /* since when a walk waits for the scan; 0: none does */
};

/*
 * Writes process.match of `p`, with `found` (a literal), now or in a later step. The caller has
 * taken the line from the budget. When `p` waits already, only `found` changes.
 */
void match_queue_add(struct discovery *d, struct process *p, const char *found);

/*
 * Writes the line of a process that waits, which has ended or left: without its mappings if they
 * were not read before.
 */
void match_queue_leave(struct discovery *d, struct process *p);

/*
 * Writes the lines of those that wait, of one at least, until the turn is over. Call in each turn
 * that drains.
 */
void match_queue_step(struct discovery *d);

#endif
