/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_thread.h: chooses the thread through which an iterator over tasks reads the memory of a
 * process. task->mm of a leader that has ended is NULL although the other threads still run.
 */
#ifndef TROCAR_BPF_MAPPINGS_MEMORY_THREAD_H
#define TROCAR_BPF_MAPPINGS_MEMORY_THREAD_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/maps/map_macros.h"
#include "shared/abi/abi.h"

/* Private: the choice, stored with the thread that reads the iterator. */
struct memory_thread {
	__u64 session_id; /* of the pass in which it was made */
	__u32 tid;
	__u32 pad;
};

TASK_MAP(memory_threads, struct memory_thread);

/*
 * Returns true for the first thread that the pass `session_id` offers for this choice. An iterator
 * may show a task again, so the choice is kept until the pass ends.
 */
static __always_inline bool memory_thread_is_first(const struct task_struct *task, __u64 session_id,
						   __u64 *chosen_by, __u32 *chosen_tid)
{
	if (*chosen_by != session_id) {
		*chosen_by = session_id;
		*chosen_tid = task->pid;
	}
	return *chosen_tid == (__u32)task->pid;
}

/*
 * Returns true for the leader or, if it has ended, for the first thread with memory in this pass.
 * The pass is for one process.
 */
static __always_inline bool memory_thread_is_chosen(struct task_struct *task,
						    const struct bpf_iter_meta *meta)
{
	const struct mm_struct *mm = BPF_CORE_READ(task, mm);
	const struct mm_struct *leaders = BPF_CORE_READ(task, group_leader, mm);
	__u64 session_id = meta->session_id;
	struct memory_thread *chosen;

	if (task->pid == task->tgid)
		return mm;
	if (!mm || leaders)
		return false;
	chosen = map_of_thread(&memory_threads);
	return chosen &&
	       memory_thread_is_first(task, session_id, &chosen->session_id, &chosen->tid);
}

/*
 * As memory_thread_is_chosen, in a pass over several processes: each has its choice in its element
 * of `asked`.
 */
static __always_inline bool memory_thread_is_asked(struct task_struct *task,
						   const struct bpf_iter_meta *meta,
						   struct asked_process *wanted)
{
	const struct mm_struct *mm = BPF_CORE_READ(task, mm);
	const struct mm_struct *leaders = BPF_CORE_READ(task, group_leader, mm);

	if (task->pid == task->tgid)
		return mm;
	return mm && !leaders &&
	       memory_thread_is_first(task, meta->session_id, &wanted->session_id, &wanted->tid);
}

#endif
