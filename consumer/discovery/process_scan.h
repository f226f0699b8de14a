/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_scan.h: reads all processes from the iterator `tasks`. The scan finds what events of the
 * kernel side have missed, and what ran before the consumer started. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_PROCESS_SCAN_H
#define TROCAR_CONSUMER_DISCOVERY_PROCESS_SCAN_H

#include <stdint.h>

#include "shared/abi/abi.h"

struct discovery;

/*
 * Scans once: matches new processes, lets go of those that are gone, finds cgroups of rules by
 * cgroup. 0 or -errno.
 */
int process_scan_run(struct discovery *d);

typedef void (*process_scan_call)(void *context, const struct task_record *task);

/* Calls `call` for each process that the iterator lists. 0 or -errno. */
int process_scan_each(const struct discovery *d, process_scan_call call, void *context);

/* Finds one process by pid among those that the iterator lists. 0, -ESRCH or -errno. */
int process_scan_find(struct discovery *d, uint32_t tgid, struct task_record *ret_task);

#endif
