/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_scan.h: reads all processes from the iterator `tasks`. The scan finds processes that
 * events of the kernel side have missed, and those that ran before the consumer started. A turn of
 * the main loop spends no more than its time on it (turn.h); the next turns go on. A process that
 * begins meanwhile causes an event, and a scan lets no process go that was seen after the scan had
 * begun. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_PROCESS_SCAN_H
#define TROCAR_CONSUMER_DISCOVERY_PROCESS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/discovery/task_list.h"
#include "shared/abi/abi.h"

struct cgroups_walk;
struct discovery;

enum scan_stage {
	SCAN_NONE,
	SCAN_WALK,    /* over the cgroups */
	SCAN_CGROUPS, /* that rules by cgroup select */
	SCAN_TASKS,   /* that the iterator lists */
	SCAN_LET_GO,  /* of processes that it did not list */
	SCAN_WATCHES, /* that must end */
};

struct process_scan {
	uint64_t number, began_ns; /* of this scan or the last */
	enum scan_stage stage;
	size_t next;	 /* cgroup or slot of this stage */
	int failed;	 /* -errno of the tasks */
	uint64_t cpu_ns; /* it has taken so far, including that of threads that listed for it */
	bool again;	 /* another scan was asked for meanwhile */
	bool new_rules;	 /* watches without rules end with this scan */
	struct task_list tasks;
	struct cgroups_walk *walk;
	uint64_t *cgroups; /* that rules by cgroup select */
	size_t cgroup_count, cgroup_room;
};

/* Begins a scan; when one runs, another follows it. */
void process_scan_ask(struct discovery *d);

/*
 * Begins a scan by new rules, which the caller has put into force; one that runs is given up. When
 * it has found all matches, it ends the watches without one.
 */
void process_scan_rules(struct discovery *d);

/* Gives up the scan that runs, if any. */
void process_scan_stop(struct discovery *d);

bool process_scan_runs(const struct discovery *d);

/*
 * Goes on with the scan that runs, if any: matches new processes, lets go of those that are gone,
 * finds cgroups of rules by cgroup. When something is left, asks for a drain soon. Call in each
 * turn that drains. 0, or -errno when the scan has ended without reading all processes.
 */
int process_scan_step(struct discovery *d);

#endif
