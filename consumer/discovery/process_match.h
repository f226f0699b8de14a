/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_match.h: what becomes of a process that the kernel side saw: which rule it matches with
 * all its criteria, which watch that makes, and the lines that say so. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_PROCESS_MATCH_H
#define TROCAR_CONSUMER_DISCOVERY_PROCESS_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/abi/abi.h"

struct discovery;
struct process;
struct watch;

/* A process as an event or the scan shows it. */
struct sighting {
	uint32_t tgid, ppid;
	uint32_t uid; /* UID_UNKNOWN where only a scan shows it */
	uint64_t start_ns, cgroup_id, time_ns;
	char comm[COMM_BYTES];
	const char *found; /* "exec", "fork", "rename", "scan" */
	bool image;	   /* it runs a new image (exec) */
};

/* Matches it against the set in force, follows moves between cgroups, writes process.match when
 * new. */
void process_match_see(struct discovery *d, const struct sighting *seen);

/* The process has gone: writes process.exit if it was announced, leaves its table and its watch. */
void process_match_gone(struct discovery *d, struct process *p);

/* Binds the cgroup to the rule by cgroup that selects it, if there is one and somebody is in it. */
void process_match_cgroup(struct discovery *d, uint64_t cgroup_id);

#endif
