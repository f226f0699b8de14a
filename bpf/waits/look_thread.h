/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_thread.h: finds a task by its number in a pid namespace, as the kernel does: in the
 * namespace's tree of pids. RCU, which the iterator holds, keeps nodes, pids and tasks intact.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_THREAD_H
#define TROCAR_BPF_WAITS_LOOK_THREAD_H

#include "bpf/kernel/kernel_pid.h"
#include "bpf/waits/look_memory.h"

#define PID_TREE_LEVELS 6 /* of a tree with 2^22 pids, and nodes of at least 16 entries */

/* Returns the pid with this number; NULL if there is none. */
static __always_inline const struct pid *find_pid(const struct pid_namespace *ns, __u32 number)
{
	__u64 entry = (__u64)BPF_CORE_READ(ns, idr.idr_rt.xa_head);
	__u32 mask = bpf_core_field_size(((struct xa_node *)0)->slots) / sizeof(__u64) - 1;

	for (int i = 0; i < PID_TREE_LEVELS; i++) {
		const struct xa_node *node = (const void *)(entry - XARRAY_NODE);
		__u64 slots = (__u64)node + bpf_core_field_offset(struct xa_node, slots);
		__u32 index;

		if ((entry & XARRAY_BITS) != XARRAY_NODE)
			break;
		index = number >> (BPF_CORE_READ(node, shift) & 31);
		entry = 0;
		if (index <= mask || i)
			bpf_probe_read_kernel(
				&entry, sizeof(entry),
				(const void *)(slots + (index & mask) * sizeof(__u64)));
	}
	return entry & XARRAY_BITS ? 0 : (const void *)entry;
}

/*
 * Returns the task with this number in the namespace at `level` of the sampled thread's pid; NULL
 * if there is none. kind: PID_OF_THREAD or PID_OF_PROCESS.
 */
static __always_inline const struct task_struct *find_task(const struct looker *l, __u32 level,
							   __u32 number, int kind)
{
	const struct task_struct___pids *task = (const void *)l->task;
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	const struct pid_namespace *ns = 0;
	const struct hlist_node *node;
	__u64 at;

	if (!number || !pid)
		return 0;
	at = (__u64)pid + bpf_core_field_offset(struct pid, numbers) +
	     level * bpf_core_type_size(struct upid) + bpf_core_field_offset(struct upid, ns);
	bpf_probe_read_kernel(&ns, sizeof(ns), (const void *)at);
	if (!ns)
		return 0;
	pid = find_pid(ns, number);
	if (!pid)
		return 0;
	at = (__u64)pid + bpf_core_field_offset(struct pid, tasks) +
	     kind * sizeof(struct hlist_head);
	node = 0;
	bpf_probe_read_kernel(&node, sizeof(node), (const void *)at);
	if (!node)
		return 0;
	return (const void *)node - bpf_core_field_offset(struct task_struct___pids, pid_links) -
	       kind * bpf_core_type_size(struct hlist_node);
}

/* Returns the level of the sampled thread's own pid namespace. */
static __always_inline __u32 find_level(const struct looker *l)
{
	const struct task_struct___pids *task = (const void *)l->task;

	return BPF_CORE_READ(task, thread_pid, level);
}

#endif
