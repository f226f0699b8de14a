/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path_wait.h: processes and cgroups, from events or the scan, that wait until the path of their
 * cgroup is found (cgroups_look.h): the rules need it, and the lines name it. What comes of a
 * process that waits waits behind it. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_PATH_WAIT_H
#define TROCAR_CONSUMER_DISCOVERY_PATH_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATH_WAIT_MAX 1024 /* beyond that none waits; a scan finds them again */

struct discovery;
struct sighting;
struct waiting;

struct path_wait {
	struct waiting *first, **last; /* owned */
	size_t count;
};

/*
 * Whether the process has to wait. True: a copy of `seen` is handed to process_match_see by a later
 * path_wait_step. False: the caller goes on with it.
 */
bool path_wait_process(struct discovery *d, const struct sighting *seen);

/*
 * Whether the process, which has ended, waits. True: its end follows it, with the name `comm` when
 * that is not "". False: the caller goes on.
 */
bool path_wait_end(struct discovery *d, uint32_t tgid, uint64_t start_ns, const char *comm);

/* Whether the cgroup has to wait, as path_wait_process: it is handed to process_match_cgroup. */
bool path_wait_cgroup(struct discovery *d, uint64_t cgroup_id);

/* Goes on with the look, and with those that have a result. Call in each turn that drains. */
void path_wait_step(struct discovery *d);

/* Whether one could go on in the next turn. */
bool path_wait_has_rest(const struct discovery *d);

/* Forgets all waiting ones. */
void path_wait_done(struct discovery *d);

#endif
