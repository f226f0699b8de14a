/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_events.h: from what the kernel saw (exec, fork, rename, exit, cgroups) and from the scan
 * of all processes to matched processes and watches. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_PROCESS_EVENTS_H
#define TROCAR_CONSUMER_DISCOVERY_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/rules/rules.h"

struct discovery;

/* Drains the events ring. */
void process_events_drain(struct discovery *d);

/*
 * Reads the `tasks` iterator: matches what is new, lets go of what is gone, finds cgroups of rules
 * by cgroup. 0 or -errno.
 */
int process_scan_run(struct discovery *d);

typedef void (*process_scan_call)(void *context, const struct task_record *task);

/* Reads the `tasks` iterator: calls `call` for each process that it lists. 0 or -errno. */
int process_scan_each(const struct discovery *d, process_scan_call call, void *context);

/* Finds one process by pid among those that the iterator lists. 0, -ESRCH, -errno. */
int process_scan_find(struct discovery *d, uint32_t tgid, struct task_record *ret_task);

/* Checks one record of the events ring: lengths, kind, NUL. Pure; fuzzed. */
bool process_events_valid(const void *record, size_t bytes);

#endif
