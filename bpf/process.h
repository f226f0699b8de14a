/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* process.h: what several programs ask about a task. */
#ifndef TROCAR_BPF_PROCESS_H
#define TROCAR_BPF_PROCESS_H

#include "bpf/kernel.h"
#include "bpf/maps.h"

/* Fills the key under which `task`'s process stands in `targets`. */
static __always_inline void process_key_of(struct task_struct *task, struct process_key *ret_key)
{
	ret_key->tgid = task->tgid;
	ret_key->pad = 0;
	ret_key->start_ns = task->group_leader->start_boottime;
}

/* Id of the cgroup2 group of `task` (cgroup_id() in include/linux/cgroup.h). */
static __always_inline __u64 process_cgroup(struct task_struct *task)
{
	return task->cgroups->dfl_cgrp->kn->id;
}

/*
 * Looks `comm` up in trie `which` (0 = a, else b); NULL when no rule matches. All 16 bytes are
 * compared, so a rule whose key holds the terminating NUL is exact. `comm` is kernel memory of any
 * length.
 */
static __always_inline struct rule_value *process_rule(const char *comm, __u32 which,
						       struct comm_key *ret_key)
{
	__builtin_memset(ret_key, 0, sizeof(*ret_key));
	ret_key->prefix_bits = 8 * COMM_BYTES;
	if (bpf_probe_read_kernel_str(ret_key->comm, COMM_BYTES, comm) < 0)
		return 0;
	if (which)
		return bpf_map_lookup_elem(&rules_b, ret_key);
	return bpf_map_lookup_elem(&rules_a, ret_key);
}

#endif
