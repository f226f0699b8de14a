/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * process_table.h: decides whether an unwind table belongs to a process. The number of the table is
 * from `targets`, which the consumer writes, and is not trusted. A table belongs to a process if
 * its ranges were read from that process in its present image, or from an ancestor that passed the
 * mappings on by fork. The parent is recorded at the fork, because real_parent may later be an
 * adopting process with other mappings.
 */
#ifndef TROCAR_BPF_UNWIND_PROCESS_TABLE_H
#define TROCAR_BPF_UNWIND_PROCESS_TABLE_H

#include "bpf/kernel/kernel.h"
#include "bpf/maps/maps.h"

/*
 * Number of forked children in the map. The least recently used are evicted first, including dead
 * ones.
 */
#define INHERITED_TABLES 4096

/*
 * Private: the table generation that was published for the parent when it forked, by child. At that
 * moment the child has its parent's mappings (fork) or shares them (vfork, clone), and keeps them
 * until it calls execve. A generation is never reused: while the table has it, its ranges are those
 * of that parent.
 */
__weak MAP(LRU_HASH, forked_tables, struct process_key, __u64, INHERITED_TABLES);

/* Returns true if the ranges were read from this process itself. */
static __always_inline bool process_table_is_own(const struct unwind_ranges *r,
						 const struct process_key *key)
{
	return r->tgid == key->tgid && r->start_ns == key->start_ns;
}

/*
 * Returns the generation of the table of `r` and `p` if it is published and describes the process
 * of `key` in its image `image` (task_struct.self_exec_id); else 0. A fork copies self_exec_id with
 * the mappings and each execve increments it, so one comparison covers the process that was read
 * and the children that inherited its table. Of all words that the consumer wrote, only `published`
 * is used.
 */
static __always_inline __u64 process_table_check(const struct unwind_ranges *r,
						 const struct unwind_process *p, __u64 image,
						 const struct process_key *key)
{
	const __u64 *inherited;
	__u64 generation = READ_WORD(r->table_generation);

	if (!generation || READ_ORDERED(p->published) != generation || r->image != image)
		return 0;
	if (process_table_is_own(r, key))
		return generation;
	inherited = bpf_map_lookup_elem(&forked_tables, key);
	return inherited && READ_WORD(*inherited) == generation ? generation : 0;
}

/* As process_table_check, for table `number`. */
static __always_inline __u64 process_table_of_image(__u64 image, const struct process_key *key,
						    __u32 number)
{
	const struct unwind_ranges *r = bpf_map_lookup_elem(&unwind_ranges, &number);
	const struct unwind_process *p = bpf_map_lookup_elem(&unwind_process, &number);

	return r && p ? process_table_check(r, p, image, key) : 0;
}

/* As process_table_of_image, for the present image of `task`. */
static __always_inline __u64 process_table_generation(struct task_struct *task,
						      const struct process_key *key, __u32 number)
{
	return process_table_of_image(task->self_exec_id, key, number);
}

/*
 * Gives `child`, which `parent` is forking and which has not run yet, the table of its parent.
 * Returns target.unwind for the child; 0 if there is no table to inherit.
 */
static __always_inline __u32 process_table_inherit(struct task_struct *parent,
						   const struct process_key *parent_key,
						   const struct process_key *child)
{
	const struct target *known = bpf_map_lookup_elem(&targets, parent_key);
	__u32 unwind = known ? READ_WORD(known->unwind) : 0;
	__u64 generation = unwind ? process_table_generation(parent, parent_key, unwind - 1) : 0;

	if (!generation || bpf_map_update_elem(&forked_tables, child, &generation, BPF_ANY))
		return 0;
	return unwind;
}

#endif
