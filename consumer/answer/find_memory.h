/* SPDX-License-Identifier: BSD-2-Clause */
/* find_memory.h: finds causes of a session's waits for memory. Report thread only. */
#ifndef TROCAR_CONSUMER_ANSWER_FIND_MEMORY_H
#define TROCAR_CONSUMER_ANSWER_FIND_MEMORY_H

#include "consumer/answer/findings_search.h"

/*
 * Adds findings of part MEMORY: a limit, another cgroup that used up the host's free memory, or a
 * host short of memory. Pages that a limit evicted and that are read again belong to part IO, which
 * is reduced by them.
 */
void find_memory(struct findings_search *s);

/*
 * Adds a finding for dirty throttling. Returns the part of `ns`, the time that threads waited for
 * disks, in which they were throttled because they wrote more than a disk takes.
 */
uint64_t find_memory_pauses(struct findings_search *s, uint64_t ns);

#endif
