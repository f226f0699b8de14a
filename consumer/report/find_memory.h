/* SPDX-License-Identifier: BSD-2-Clause */
/* find_memory.h: finds why a session's threads waited for memory. Report thread only. */
#ifndef TROCAR_CONSUMER_REPORT_FIND_MEMORY_H
#define TROCAR_CONSUMER_REPORT_FIND_MEMORY_H

#include "consumer/report/findings_search.h"

/*
 * Adds findings of part MEMORY: a limit, another cgroup for which the machine has none left, or
 * that it is short. And of part IO, which it shortens by what it explains: pages that a limit threw
 * out and that are read back, and pauses of threads that wrote faster than the disk does.
 */
void find_memory(struct findings_search *s);

#endif
