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

/* A name as the key of the tries; its place on the stack is aligned for its two words. */
struct process_name {
	__u32 pad;
	struct comm_key key;
} __attribute__((aligned(8)));

_Static_assert(__builtin_offsetof(struct process_name, key.comm) == 8, "comm is not aligned");

/*
 * The name of `task`, in two loads: a helper that copies it costs as much as the rest of the
 * question. The kernel pads it with zeros (__set_task_comm); what may stand behind the NUL is no
 * part of any rule.
 */
static __always_inline void process_name_of(struct task_struct *task, struct process_name *ret_name)
{
	const volatile __u64 *from = (const volatile __u64 *)task->comm;
	__u64 *to = (__u64 *)ret_name->key.comm;

	ret_name->key.prefix_bits = 8 * COMM_BYTES;
	to[0] = from[0];
	to[1] = from[1];
}

/* The same of kernel memory of any length; false when it cannot be read. */
static __always_inline bool process_name_read(const char *comm, struct process_name *ret_name)
{
	__builtin_memset(ret_name, 0, sizeof(*ret_name));
	ret_name->key.prefix_bits = 8 * COMM_BYTES;
	return bpf_probe_read_kernel_str(ret_name->key.comm, COMM_BYTES, comm) >= 0;
}

/*
 * Looks `name` up in trie `which` (0 = a, else b); NULL when no rule matches. All 16 bytes are
 * compared, so a rule whose key holds the terminating NUL is exact.
 */
static __always_inline struct rule_value *process_rule(const struct process_name *name, __u32 which)
{
	if (which)
		return bpf_map_lookup_elem(&rules_b, &name->key);
	return bpf_map_lookup_elem(&rules_a, &name->key);
}

/*
 * Private: a bit for each process id (the kernel's PID_MAX_LIMIT is 4 Mi), set before the process
 * may enter `targets` and cleared when its entry goes. A look into `targets`, cold, is 250 ns and
 * more; who runs an execve and is nobody's target pays one load for it instead. The consumer enters
 * only processes that an event, a sample or an iterator showed it, and those set the bit. A bit too
 * many costs a lookup, nothing else.
 */
#define PROCESS_IDS (4u << 20)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROCESS_IDS / 64);
	__type(key, __u32);
	__type(value, __u64);
} process_marks __weak SEC(".maps");

static __always_inline __u64 *process_mark_word(__u32 tgid)
{
	__u32 index = tgid / 64;

	return bpf_map_lookup_elem(&process_marks, &index);
}

static __always_inline void process_mark(__u32 tgid)
{
	__u64 *word = process_mark_word(tgid), bit = 1ull << (tgid & 63);

	if (word && !(READ_WORD(*word) & bit))
		__sync_fetch_and_or(word, bit);
}

static __always_inline void process_unmark(__u32 tgid)
{
	__u64 *word = process_mark_word(tgid);

	if (word)
		__sync_fetch_and_and(word, ~(1ull << (tgid & 63)));
}

/* False when the process cannot stand in `targets`. */
static __always_inline bool process_marked(__u32 tgid)
{
	const __u64 *word = process_mark_word(tgid);

	return !word || READ_WORD(*word) >> (tgid & 63) & 1;
}

#endif
