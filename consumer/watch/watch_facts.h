/* SPDX-License-Identifier: BSD-2-Clause */
/* watch_facts.h: reads the facts of all watches from time to time. Main thread only. */
#ifndef TROCAR_CONSUMER_WATCH_WATCH_FACTS_H
#define TROCAR_CONSUMER_WATCH_WATCH_FACTS_H

#include "consumer/watch/watch.h"

/*
 * Facts are read at most so often, until the turn is over (turn.h). On Linux 6.18 with four v1
 * hierarchies a reading takes 50 us of CPU time, a whole one 160, and more in a cgroup that
 * allocates memory: the kernel sums the counters of all CPUs up for memory.stat.
 */
#define WATCH_FACTS_EVERY_NS NSEC_PER_SEC

/* While no more are watched, the readings of calm time are whole. */
#define WATCH_FACTS_FEW 16

/*
 * Reads the facts of watches with a last reading that is FACTS_APART_NS old, as many as the turn
 * allows; the next call goes on behind the last of them. Call after each drain.
 */
void watch_facts_step(struct watches *ws, uint64_t now_ns);

/* A facts_place_call; `context` is the struct watches. */
size_t watch_facts_of_root(void *context, uint32_t pids[FACTS_PLACE_PIDS]);

#endif
