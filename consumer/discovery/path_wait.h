/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path_wait.h: processes and cgroups, from events or the scan, that wait until the path of their
 * cgroup is found (cgroups_look.h): the rules need it, and the lines name it. Later events of a
 * waiting process wait after it. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_PATH_WAIT_H
#define TROCAR_CONSUMER_DISCOVERY_PATH_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATH_WAIT_MAX 1024 /* beyond this none waits; a scan finds them again */

struct discovery;
struct sighting;
struct waiting;

struct path_wait {
	struct waiting *first, **last; /* owned */
	size_t count;
};

/*
 * Returns whether the process has to wait. True: a later path_wait_step passes a copy of `seen` to
 * process_match_see. False: the caller continues with it.
 */
bool path_wait_process(struct discovery *d, const struct sighting *seen);

/*
 * Returns whether the process, which has ended, waits. True: its end is queued after it, with the
 * name `comm` unless that is "". False: the caller continues.
 */
bool path_wait_end(struct discovery *d, uint32_t tgid, uint64_t start_ns, const char *comm);

/*
 * Returns whether the cgroup has to wait, as path_wait_process; it is then passed to
 * process_match_cgroup.
 */
bool path_wait_cgroup(struct discovery *d, uint64_t cgroup_id);

/*
 * Continues the search, and processes the waiting ones that have a result. Call in each iteration
 * that drains.
 */
void path_wait_step(struct discovery *d);

/* Returns whether the next iteration could continue with one. */
bool path_wait_has_rest(const struct discovery *d);

/* Drops all waiting ones. */
void path_wait_done(struct discovery *d);

#endif
