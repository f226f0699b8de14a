/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * neighbours.h: counts the users of the CPUs while a session runs. The time of every tick is added
 * to the cgroup of the task that it interrupted, to idle_ns, or to a counter of unlisted time. So
 * the sum of all is the time of all CPUs, as far as they ticked.
 */
#ifndef TROCAR_BPF_CPU_NEIGHBOURS_H
#define TROCAR_BPF_CPU_NEIGHBOURS_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/maps/maps.h"
#include "bpf/maps/table.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_lookup.h"

/* Preallocated: the sampler inserts in interrupt context. The consumer empties it. */
MAP(HASH, neighbours, __u64, struct neighbour, NEIGHBOURS_MAX);

/*
 * The same times by CPU, to show which cgroups used the CPUs that a cgroup ran on. It has the same
 * keys.
 */
MAP(PERCPU_HASH, neighbour_cpus, __u64, __u64, NEIGHBOURS_MAX);

/* A cgroup that finds no space in this map has no entry in `neighbours` either. */
static __always_inline void add_on_cpu(__u64 cgroup, __u64 period_ns)
{
	__u64 *here = bpf_map_lookup_elem(&neighbour_cpus, &cgroup);

	if (here)
		*here += period_ns;
	else
		bpf_map_update_elem(&neighbour_cpus, &cgroup, &period_ns, BPF_NOEXIST);
}

/*
 * Records the ancestors of the current task's cgroup: the cgroup may be gone when the session ends.
 */
static __always_inline void note_above(__u64 cgroup)
{
	struct neighbour *n = bpf_map_lookup_elem(&neighbours, &cgroup);

	if (!n)
		return;
	for (int i = 0; i < NEIGHBOUR_LEVELS; i++)
		n->above[i] = bpf_get_current_ancestor_cgroup_id(i + 1);
}

/*
 * Inserts the current task's cgroup. Not inlined: its name needs stack space that the sampler's
 * walk does not have. Returns 0 or the error of the table.
 */
static __noinline int insert_neighbour(__u64 cgroup, __u64 period_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct neighbour fresh = { .cpu_ns = period_ns, .slot = NO_SLOT, .ticks = 1, .votes = 1 };
	int r;

	fresh.tgid = task->tgid;
	bpf_get_current_comm(fresh.comm, sizeof(fresh.comm));
	bpf_probe_read_kernel_str(fresh.name, sizeof(fresh.name),
				  BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, name));
	r = bpf_map_update_elem(&neighbours, &cgroup, &fresh, BPF_NOEXIST);
	if (r == 0)
		note_above(cgroup);
	return r;
}

/*
 * Counts the tick for the name of its thread, by the majority vote of Boyer and Moore: a name with
 * the majority of the ticks wins. Concurrent CPUs may lose a vote.
 */
static __noinline int vote_name(struct neighbour *known)
{
	__u64 name[COMM_BYTES / 8] = {}, stands[COMM_BYTES / 8];

	bpf_get_current_comm((char *)name, sizeof(name));
	__builtin_memcpy(stands, known->comm, sizeof(stands));
	known->ticks++;
	if (stands[0] == name[0] && stands[1] == name[1]) {
		known->votes++;
	} else if (known->votes) {
		known->votes--;
	} else {
		__builtin_memcpy(known->comm, name, sizeof(name));
		known->votes = 1;
	}
	return 0;
}

/* Adds a tick's time to the current task's cgroup. `slot` is the slot of its watch, or NO_SLOT. */
static __always_inline void add_neighbour(__u64 cgroup, __u32 slot, __u64 period_ns)
{
	struct neighbour *known = bpf_map_lookup_elem(&neighbours, &cgroup);

	int error = 0;

	add_on_cpu(cgroup, period_ns);
	if (!known) {
		error = insert_neighbour(cgroup, period_ns);
		if (!error)
			return;
	}
	/* Another CPU may have inserted it in the meantime. */
	if (!known)
		known = bpf_map_lookup_elem(&neighbours, &cgroup);
	if (!known) {
		TOTALS_ADD(neighbours_full_ns, period_ns);
		if (table_was_short(error))
			TOTALS_ADD(neighbours_short_ns, period_ns);
		return;
	}
	__sync_fetch_and_add(&known->cpu_ns, period_ns);
	known->tgid = bpf_get_current_pid_tgid() >> 32;
	known->slot = slot;
	vote_name(known);
}

/*
 * Counts the time `period_ns` of a tick for the current task, of cgroup `cgroup`. Call it only if
 * control.sessions is not 0. Not inlined: a tick without a session would have to fetch the code
 * after it from another cache line. A global function: the verifier checks it once.
 */
__weak __noinline int neighbours_count(__u64 cgroup, __u32 slot, __u64 period_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct control *c = control_get();

	if (!c || watch_lookup_is_stale(c, bpf_ktime_get_ns()))
		return 0;
	if (!task->pid)
		TOTALS_ADD(idle_ns, period_ns);
	else if (!scope_allows_task(task))
		TOTALS_ADD(neighbours_hidden_ns, period_ns);
	else
		add_neighbour(cgroup, slot, period_ns);
	return 0;
}

#endif
