/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_match.h: handles a process that the kernel side has seen: finds a rule with criteria that
 * it all meets, binds it to the watch of its cgroup, and writes the lines. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_PROCESS_MATCH_H
#define TROCAR_CONSUMER_DISCOVERY_PROCESS_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/abi/abi.h"

struct discovery;
struct process;
struct watch;

/* A process as an event or the scan reports it. */
struct sighting {
	uint32_t tgid, ppid;
	uint32_t uid; /* UID_UNKNOWN if only a scan has reported it */
	uint64_t start_ns, cgroup_id, time_ns;
	char comm[COMM_BYTES];
	const char *found;   /* "exec", "fork", "rename", "scan" */
	uint32_t generation; /* of the rule that the kernel side matched; 0: no rule */
	bool image;	     /* it runs a new image (exec) */
};

/*
 * Matches the process against the active rule set, follows its move to another cgroup, and writes
 * process.match if the match is new, process.left if it no longer matches. Counts the event as
 * stale if it is of another generation and no rule by name matches. Call path_wait_process before.
 */
void process_match_see(struct discovery *d, const struct sighting *seen);

/*
 * Handles the process's end: writes process.exit if process.match was written, and removes it from
 * its unwind table and its watch.
 */
void process_match_gone(struct discovery *d, struct process *p);

/*
 * Handles a living process that nothing needs any more: writes process.left with `reason` if
 * process.match was written, and removes it from its unwind table, its watch and `targets`.
 * process_match_see undoes this.
 */
void process_match_leave(struct discovery *d, struct process *p, const char *reason);

/*
 * Binds the cgroup to the rule by cgroup that selects it, if there is one and the cgroup is
 * populated.
 */
void process_match_cgroup(struct discovery *d, uint64_t cgroup_id);

#endif
