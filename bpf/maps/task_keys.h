/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* task_keys.h: the keys of a task in the maps: its process, its cgroup and its name. */
#ifndef TROCAR_BPF_MAPS_TASK_KEYS_H
#define TROCAR_BPF_MAPS_TASK_KEYS_H

#include <bpf/bpf_core_read.h>

#include "bpf/kernel/kernel.h"
#include "bpf/maps/maps.h"

/* Sets the key of the process of `task` in `targets`. */
static __always_inline void task_keys_process(struct task_struct *task, struct process_key *ret_key)
{
	ret_key->tgid = task->tgid;
	ret_key->pad = 0;
	ret_key->start_ns = task->group_leader->start_boottime;
}

/* As task_keys_process, for a thread-group leader: saves one load. */
static __always_inline void task_keys_leader(struct task_struct *leader,
					     struct process_key *ret_key)
{
	ret_key->tgid = leader->tgid;
	ret_key->pad = 0;
	ret_key->start_ns = leader->start_boottime;
}

/* Returns the id of the cgroup2 group of `task` (cgroup_id() in include/linux/cgroup.h). */
static __always_inline __u64 task_keys_cgroup(struct task_struct *task)
{
	return task->cgroups->dfl_cgrp->kn->id;
}

/*
 * Reads the id of the cgroup2 group of `task` with a helper. Use it in code that the verifier
 * reaches in several states: at each load of a pointer from a trusted one, verifiers since 6.2
 * search the kernel's BTF by name, four times from end to end (btf_nested_type_is_trusted in
 * kernel/bpf/btf.c). Such loads took 42 % of the time to load all programs.
 */
static __always_inline __u64 task_keys_read_cgroup(struct task_struct *task)
{
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

/* Reads the start time of the process of `task` with a helper, as task_keys_read_cgroup does. */
static __always_inline __u64 task_keys_read_start(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_boottime);
}

/* Sets the key of the process of `task` with helpers, as task_keys_read_cgroup does. */
static __always_inline void task_keys_read_process(struct task_struct *task,
						   struct process_key *ret_key)
{
	ret_key->tgid = task->tgid;
	ret_key->pad = 0;
	ret_key->start_ns = task_keys_read_start(task);
}

/* A thread name as a key of the tries, aligned on the stack for two 64-bit stores. */
struct task_name {
	__u32 pad;
	struct comm_key key;
} __attribute__((aligned(8)));

_Static_assert(__builtin_offsetof(struct task_name, key.comm) == 8, "comm is not aligned");

/*
 * Copies the name of `task` by two loads to `ret_name`, which is aligned for them: a helper would
 * cost as much as the rest of a test. The kernel pads the name with zeros (__set_task_comm), and no
 * rule compares bytes after the NUL.
 */
static __always_inline void task_keys_copy_name(struct task_struct *task, char *ret_name)
{
	const volatile __u64 *from = (const volatile __u64 *)task->comm;
	__u64 *to = (__u64 *)ret_name;

	to[0] = from[0];
	to[1] = from[1];
}

/* Sets the name of `task` as a key. */
static __always_inline void task_keys_name(struct task_struct *task, struct task_name *ret_name)
{
	ret_name->key.prefix_bits = 8 * COMM_BYTES;
	task_keys_copy_name(task, ret_name->key.comm);
}

/* Sets the name from a kernel string of any length. Returns false if it cannot be read. */
static __always_inline bool task_keys_read_name(const char *comm, struct task_name *ret_name)
{
	__builtin_memset(ret_name, 0, sizeof(*ret_name));
	ret_name->key.prefix_bits = 8 * COMM_BYTES;
	return bpf_probe_read_kernel_str(ret_name->key.comm, COMM_BYTES, comm) >= 0;
}

/*
 * Returns the rule for `name` in trie `which` (0 = a, else b), or NULL. All 16 bytes are compared,
 * so a rule with the terminating NUL in its key matches exactly.
 */
static __always_inline struct rule_value *task_keys_find_rule(const struct task_name *name,
							      __u32 which)
{
	if (which)
		return bpf_map_lookup_elem(&rules_b, &name->key);
	return bpf_map_lookup_elem(&rules_a, &name->key);
}

#endif
