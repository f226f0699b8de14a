/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_targets.h: writes the kernel side's entry of a process in its map `targets`: whether a
 * rule matched it, whether its stacks arrive as raw addresses, and which table the kernel side
 * walks them with.
 *
 * Each change reads the entry, changes it and writes it. The kernel side writes the same entry at
 * exec. If that happens between the read and the write, raw addresses of the new image arrive for a
 * moment; they are not in the old mappings, so the drain reads the mappings again (design section
 * 3). Main thread only.
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
 * Writes the match of the process: TARGET_MATCHED and TARGET_REPORTED if it has a rule or was
 * requested (creates the entry if there is none), and the number of its own table if it has one.
 * Does nothing for a process that has ended. Returns 0 or -errno.
 */
int process_targets_match(const struct process_targets *t, const struct process *p);

/*
 * Deletes the entry of a process that has ended. The kernel side deletes it at the exit, but the
 * consumer may have written it again since, from an event that was in the ring by then, and nothing
 * else would delete that entry.
 */
void process_targets_forget(const struct process_targets *t, const struct process *p);

/*
 * Makes the kernel side take raw addresses of its stacks from now on, or, with `mapped` false,
 * resolve their files. Also writes the number of its own table if it has one, because the entry may
 * be newer than the table. Returns 0, or -ENOENT if the kernel side does not know the process.
 */
int process_targets_set_mapped(const struct process_targets *t, const struct process *p,
			       bool mapped);

/*
 * Writes the number of the process's table, p->unwind.table. Returns 0, or -ENOENT if the kernel
 * side does not know the process.
 */
int process_targets_set_unwind(const struct process_targets *t, const struct process *p);

#endif
