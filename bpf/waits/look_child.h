/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_child.h: reports the process that a thread waits for in wait4(2) or waitid(2): the one that
 * the call names, or the only child of the thread. RCU, which the iterator holds, keeps the tasks
 * intact.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_CHILD_H
#define TROCAR_BPF_WAITS_LOOK_CHILD_H

#include "bpf/kernel/kernel_end.h"
#include "bpf/waits/look_halt.h"
#include "bpf/waits/look_thread.h"
#include "bpf/watch/scope.h"

/* Returns the only child that the thread has started; NULL if it has none, or several. */
static __always_inline const struct task_struct *look_only_child(__u64 task)
{
	const struct task_struct___end *fields = (const void *)task;
	__u64 head = task + bpf_core_field_offset(struct task_struct___end, children);
	const struct list_head *first = BPF_CORE_READ(fields, children.next);

	if (!first || (__u64)first == head || (__u64)BPF_CORE_READ(first, next) != head)
		return 0;
	return (const void *)first - bpf_core_field_offset(struct task_struct___end, sibling);
}

/*
 * Sets the process of looker.record.on, a LOOK_ON_CHILD. A process outside of the scope is not
 * reported. A global function: the verifier checks it once.
 */
__noinline int look_at_child(void)
{
	struct looker *l = looker_get();
	const struct task_struct *child;
	struct look_on *on;

	if (!l)
		return 0;
	on = &l->record.on;
	if (on->number > 0)
		child = find_task(l, find_level(l) & 31, on->number, PID_OF_PROCESS);
	else
		child = look_only_child(l->task);
	if (!child || !scope_allows_task((struct task_struct *)child))
		return 0;
	on->peer_pid = BPF_CORE_READ(child, tgid);
	on->peer_flags = look_halt(child, BPF_CORE_READ(child, __state));
	BPF_CORE_READ_INTO(&on->peer_comm, child, comm);
	return 0;
}

#endif
