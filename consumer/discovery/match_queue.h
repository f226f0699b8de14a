/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * match_queue.h: writes process.match, which requires reading the process's mappings. An iteration
 * of the main loop spends at most its time slice on that (turn.h); other matched processes wait in
 * a queue for the next iterations. Main thread only.
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
	uint64_t held_ns; /* since when a walk waits for the scan; 0: no walk waits */
};

/*
 * Writes process.match of `p`, with `found` (a literal), now or in a later step. The caller has
 * taken the line from the budget. If `p` already waits, only `found` changes.
 */
void match_queue_add(struct discovery *d, struct process *p, const char *found);

/*
 * Writes the line of a waiting process that has ended or left, without its mappings if they were
 * not read before.
 */
void match_queue_leave(struct discovery *d, struct process *p);

/*
 * Writes the lines of waiting processes, at least one, until the time slice is over. Call in each
 * iteration that drains.
 */
void match_queue_step(struct discovery *d);

#endif
