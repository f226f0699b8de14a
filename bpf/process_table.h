/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * process_table.h: is this the table of that process? The number comes from `targets`, which the
 * consumer writes, and is believed in nothing: a table is a process's when its ranges were taken
 * from that process in its present image, or from an ancestor of whose mappings it has a copy since
 * a fork.
 */
#ifndef TROCAR_BPF_PROCESS_TABLE_H
#define TROCAR_BPF_PROCESS_TABLE_H

#include "bpf/kernel.h"
#include "bpf/maps.h"

/* Children whose fork is remembered; the longest unused go first, and those of the dead with them.
 */
#define INHERITED_TABLES 4096

/*
 * Private: the filling that was published as the forking process's own when it forked. At that
 * moment the child has its parent's mappings (fork), or shares them (vfork, clone), and keeps them
 * until it calls execve. Numbers of fillings are never used twice: one that is still in the table
 * says whose ranges these are.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, INHERITED_TABLES);
	__type(key, struct process_key);
	__type(value, __u64);
} heirs __weak SEC(".maps");

/* True when the ranges were taken from this process itself. */
static __always_inline bool process_table_is_own(const struct unwind_ranges *r,
						 const struct process_key *key)
{
	return r->tgid == key->tgid && r->start_ns == key->start_ns;
}

/*
 * The filling of table `number` if it is published and good for `task` in its present image; else
 * 0. A fork copies self_exec_id with the mappings and each execve raises it, so the one comparison
 * serves the process that was looked at and its heirs. Nothing here is taken from the consumer but
 * the word that a filling is published.
 */
static __always_inline __u64 process_table_generation(struct task_struct *task,
						      const struct process_key *key, __u32 number)
{
	const struct unwind_ranges *r = bpf_map_lookup_elem(&unwind_ranges, &number);
	const struct unwind_process *p = bpf_map_lookup_elem(&unwind_process, &number);
	const __u64 *inherited;
	__u64 generation;

	if (!r || !p)
		return 0;
	generation = READ_WORD(r->table_generation);
	if (!generation || READ_ORDERED(p->published) != generation ||
	    r->execs != task->self_exec_id)
		return 0;
	if (process_table_is_own(r, key))
		return generation;
	inherited = bpf_map_lookup_elem(&heirs, key);
	return inherited && READ_WORD(*inherited) == generation ? generation : 0;
}

/*
 * `child`, which is being forked by `parent` and has not run yet, inherits the table that its
 * parent has. Returns what belongs in its target.unwind, 0 when there is nothing to inherit.
 */
static __always_inline __u32 process_table_inherit(struct task_struct *parent,
						   const struct process_key *parent_key,
						   const struct process_key *child)
{
	const struct target *known = bpf_map_lookup_elem(&targets, parent_key);
	__u32 unwind = known ? READ_WORD(known->unwind) : 0;
	__u64 generation = unwind ? process_table_generation(parent, parent_key, unwind - 1) : 0;

	if (!generation || bpf_map_update_elem(&heirs, child, &generation, BPF_ANY))
		return 0;
	return unwind;
}

#endif
