/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_targets.h: the kernel side's entry of a process, in its map `targets`: whether a rule
 * matched it, whether its stacks are to come as raw addresses, and by which table they are walked.
 *
 * Each change is read, change, write. The kernel side writes the same entry at exec: when that
 * falls between read and write, raw addresses of the new image come for a moment; they are unknown
 * in the old mappings, which makes the drain read them again (design section 3). Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_PROCESS_TARGETS_H
#define TROCAR_CONSUMER_PROCESS_PROCESS_TARGETS_H

#include <stdbool.h>

#include "consumer/process/process.h"
#include "consumer/rules/ruleset.h"

struct process_targets {
	int map_fd;			   /* borrowed */
	const struct active_rules *active; /* borrowed */
};

/* `map_fd` and `active` are borrowed. */
void process_targets_init(struct process_targets *t, int map_fd, const struct active_rules *active);

/*
 * Writes whom the process matches: TARGET_MATCHED and TARGET_TOLD when it has a rule or was
 * requested, which makes the entry if there is none; and its table, if it has one of its own. 0 or
 * -errno.
 */
int process_targets_match(const struct process_targets *t, const struct process *p);

/*
 * Has the kernel side take raw addresses of its stacks from now on, or (false) resolve their files.
 * 0, or -ENOENT where it does not know the process.
 */
int process_targets_set_mapped(const struct process_targets *t, const struct process *p,
			       bool mapped);

/* Tells the number of the process's table, p->unwind.table. 0, or -ENOENT as above. */
int process_targets_set_unwind(const struct process_targets *t, const struct process *p);

#endif
