/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_events.h: turns the kernel side's events (exec, fork, rename, exit, cgroups) and the scan
 * of all processes into matched processes and watches. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_PROCESS_EVENTS_H
#define TROCAR_CONSUMER_DISCOVERY_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct discovery;

/* Drains the events ring. */
void process_events_drain(struct discovery *d);

/*
 * Reads the `tasks` iterator: matches new processes, lets go of those that are gone, finds the
 * cgroups of rules by cgroup. Returns 0 or -errno.
 */
int process_scan_run(struct discovery *d);

typedef void (*process_scan_call)(void *context, const struct task_record *task);

/* Reads the `tasks` iterator: calls `call` for each listed process. Returns 0 or -errno. */
int process_scan_each(const struct discovery *d, process_scan_call call, void *context);

/* Finds one process by pid among those that the iterator lists. Returns 0, -ESRCH, or -errno. */
int process_scan_find(struct discovery *d, uint32_t tgid, struct task_record *ret_task);

/*
 * Checks one record of the events ring: its lengths, its kind, the NUL of its texts. Pure; fuzzed.
 */
bool process_events_valid(const void *record, size_t bytes);

#endif
