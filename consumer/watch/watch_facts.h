/* SPDX-License-Identifier: BSD-2-Clause */
/* watch_facts.h: reads the facts of all watches periodically. Main thread only. */
#ifndef TROCAR_CONSUMER_WATCH_WATCH_FACTS_H
#define TROCAR_CONSUMER_WATCH_WATCH_FACTS_H

#include "consumer/watch/watch.h"

/*
 * Facts are read at most this often, until the time slice is over (turn.h). On Linux 6.18 with four
 * v1 hierarchies, a reading takes 50 us of CPU time and a full one 160 us. It takes more in a
 * cgroup that allocates memory, because the kernel sums the counters of all CPUs for memory.stat.
 */
#define WATCH_FACTS_EVERY_NS NSEC_PER_SEC

/* Up to this number of watches, baseline readings are full ones. */
#define WATCH_FACTS_FEW 16

/*
 * Reads the facts of watches with a last reading that is at least FACTS_APART_NS old, within the
 * time slice; the next call continues after the last of them. Call after each drain.
 */
void watch_facts_step(struct watches *ws, uint64_t now_ns);

/* A facts_place_call; `context` is the struct watches. */
size_t watch_facts_of_root(void *context, uint32_t pids[FACTS_PLACE_PIDS]);

#endif
