/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_scan.h: reads all processes from the iterator `tasks`. The scan finds processes that
 * events of the kernel side have missed, and processes that ran before the consumer started. An
 * iteration of the main loop spends at most its time slice on it (turn.h); the next iterations
 * continue. A process that begins in the meantime causes an event, and a scan releases no process
 * that was seen after the scan had begun. Main thread only.
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
	SCAN_WALK,    /* walks the cgroups */
	SCAN_CGROUPS, /* handles cgroups that rules by cgroup select */
	SCAN_TASKS,   /* reads the processes that the iterator lists */
	SCAN_LET_GO,  /* releases processes that it did not list */
	SCAN_WATCHES, /* ends watches */
};

struct process_scan {
	uint64_t number, began_ns; /* of the running scan, or of the last */
	enum scan_stage stage;
	size_t next;	 /* next cgroup or slot of this stage */
	int failed;	 /* -errno of the iterator */
	uint64_t cpu_ns; /* used so far, including by threads that listed directories for it */
	bool repeat;	 /* another scan was requested in the meantime */
	bool new_rules;	 /* watches without rules end with this scan */
	struct task_list tasks;
	struct cgroups_walk *walk;
	uint64_t *cgroups; /* that rules by cgroup select */
	size_t cgroup_count, cgroup_room;
};

/* Begins a scan; if one runs, another follows it. */
void process_scan_ask(struct discovery *d);

/*
 * Begins a scan by new rules, which the caller has activated; a running scan is abandoned. When it
 * has found all matches, it ends the watches without one.
 */
void process_scan_rules(struct discovery *d);

/* Abandons the running scan, if any. */
void process_scan_stop(struct discovery *d);

bool process_scan_runs(const struct discovery *d);

/*
 * Continues the running scan, if any: matches new processes, releases those that are gone, finds
 * cgroups of rules by cgroup. If work is left, requests a drain soon. Call in each iteration that
 * drains. Returns 0, or -errno if the scan has ended without reading all processes.
 */
int process_scan_step(struct discovery *d);

#endif
