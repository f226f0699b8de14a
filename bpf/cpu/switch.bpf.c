// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * switch.bpf.c: counts the context switches of watched cgroups, voluntary and involuntary. The
 * program is attached for the duration of a session and runs at every context switch on the host.
 * So its first test is one load, and each CPU caches for one jiffy which watch a cgroup has.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_tracing.h>

#include "bpf/discovery/target_match.h"
#include "bpf/maps/task_keys.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_answers.h"
#include "bpf/watch/watch_lookup.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * Returns 1 if the process of the current task, which is the one that leaves the CPU, matches a
 * rule. A global function: the verifier checks it once, and not for each watch.
 */
__noinline int switch_is_matched(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct control *c = control_get();
	struct target_match match;
	struct process_key key;

	if (!c)
		return 0;
	task_keys_read_process(task, &key);
	target_match_find(task, bpf_map_lookup_elem(&targets, &key), c, &match);
	return match.matched != 0;
}

/* Returns true if the slot excludes this kind of task. */
static __always_inline bool excludes_task(const struct slot *slot, const struct task_struct *task)
{
	__u32 flags = READ_WORD(slot->flags);

	if (flags & SLOT_NO_KTHREADS && task->flags & PF_KTHREAD)
		return true;
	return flags & SLOT_BY_PROCESS && !switch_is_matched();
}

/* Counts one switch of `task` for one watch. */
static __always_inline void count_for(const struct slot *slot, __u32 index,
				      const struct task_struct *task, bool voluntary)
{
	__u32 state = READ_WORD(slot->state);
	struct slot_switches *counts;

	if ((state != SLOT_RECORDER && state != SLOT_CAPTURE) || excludes_task(slot, task))
		return;
	counts = bpf_map_lookup_elem(&switches, &index);
	if (!counts)
		return;
	if (voluntary)
		counts->voluntary++;
	else
		counts->involuntary++;
}

/*
 * Counts as the scheduler does (__schedule in kernel/sched/core.c, nvcsw and nivcsw): a preempted
 * task was runnable, whatever state it had already set. `state` is the copy that the kernel made
 * before another CPU could wake the task. The tracepoint has these four arguments since 5.18.
 */
SEC("tp_btf/sched_switch")
int BPF_PROG(count_switches, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	struct watch_answers *answers = map_single(&watch_answers);
	const struct control *control = control_get();
	const struct slot *slot;
	__u32 index;

	if (!control || !answers || !READ_WORD(control->armed))
		return 0;
	/* Skip the idle task: it is in the root cgroup, which is watched on hybrid hosts. */
	if (!prev->pid)
		return 0;
	if (!watch_answers_find(answers, bpf_get_current_cgroup_id(), &index) ||
	    !scope_allows_task(prev) || watch_answers_is_stale(answers, control))
		return 0;
	watch_for_each (slot, index)
		count_for(slot, index, prev, state && !preempt);
	return 0;
}
