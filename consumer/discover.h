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
#include "shared/jsonw.h"
#include "shared/rules/rules.h"

struct agent;

/* Drains the events ring. */
void discover_drain(struct agent *a);

/*
 * Reads the `tasks` iterator: matches what is new, lets go of what is gone, finds cgroups of rules
 * by cgroup. 0 or -errno.
 */
int discover_scan(struct agent *a);

/* What a preview does not show. */
struct discover_left {
	size_t omitted;	   /* matches beyond `max` */
	size_t unreadable; /* cgroups of rules by cgroup whose processes could not be read */
};

/*
 * Which running processes each rule of `rules` would match, without applying it: an array of {rule,
 * pid, comm, cgroup}, at most `max`. The inactive tries must hold the set. 0 or -errno.
 */
int discover_preview(struct agent *a, const struct rules *rules, size_t max, struct jsonw *w,
		     struct discover_left *ret_left);

/* Finds one process by pid among those that the iterator lists. 0, -ESRCH, -errno. */
int discover_find(struct agent *a, uint32_t tgid, struct task_record *ret_task);

/* Checks one record of the events ring: lengths, kind, NUL. Pure; fuzzed. */
bool discover_event_valid(const void *record, size_t bytes);

#endif
