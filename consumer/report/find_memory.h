/* SPDX-License-Identifier: BSD-2-Clause */
/* find_memory.h: finds why a session's threads waited for memory. Report thread only. */
#ifndef TROCAR_CONSUMER_REPORT_FIND_MEMORY_H
#define TROCAR_CONSUMER_REPORT_FIND_MEMORY_H

#include "consumer/report/findings_search.h"

/*
 * Adds findings of part MEMORY: a limit, another cgroup for which the machine has none left, or
 * that it is short. Pages that a limit threw out and that are read back are of part IO, which it
 * shortens by them.
 */
void find_memory(struct findings_search *s);

/*
 * Returns the part of `ns`, the time that threads waited for disks, in which they were held back
 * because they write more than a disk takes, and adds that finding.
 */
uint64_t find_memory_pauses(struct findings_search *s, uint64_t ns);

#endif
