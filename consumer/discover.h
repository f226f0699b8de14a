/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discover.h: from what the kernel saw (exec, fork, rename, exit, cgroups) and from the scan of all
 * processes to matched processes and watches. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVER_H
#define TROCAR_CONSUMER_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi.h"
#include "shared/rules/rules.h"

struct discovery;

/* Drains the events ring. */
void discover_drain(struct discovery *d);

/*
 * Reads the `tasks` iterator: matches what is new, lets go of what is gone, finds cgroups of rules
 * by cgroup. 0 or -errno.
 */
int discover_scan(struct discovery *d);

typedef void (*discover_call)(void *context, const struct task_record *task);

/* Reads the `tasks` iterator: calls `call` for each process that it lists. 0 or -errno. */
int discover_each(const struct discovery *d, discover_call call, void *context);

/* Finds one process by pid among those that the iterator lists. 0, -ESRCH, -errno. */
int discover_find(struct discovery *d, uint32_t tgid, struct task_record *ret_task);

/* Checks one record of the events ring: lengths, kind, NUL. Pure; fuzzed. */
bool discover_event_valid(const void *record, size_t bytes);

#endif
