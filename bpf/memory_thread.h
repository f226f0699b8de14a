/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_thread.h: chooses the thread by which an iterator over tasks reads the memory of a
 * process. task->mm of a leader that has ended is NULL while the other threads run on.
 */
#ifndef TROCAR_BPF_MEMORY_THREAD_H
#define TROCAR_BPF_MEMORY_THREAD_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/kernel.h"

/* Private: the choice, by the thread that reads the iterator. */
struct memory_thread {
	__u64 session_id; /* of the reading in which it was made */
	__u32 tid;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct memory_thread);
} memory_threads SEC(".maps");

/*
 * Returns true for the leader, or, when that has ended, for the first thread with memory that this
 * reading meets. An iterator may show a task again, so the choice is kept until the reading ends.
 * The reading is of one process.
 */
static __always_inline bool memory_thread_is_chosen(struct task_struct *task,
						    const struct bpf_iter_meta *meta)
{
	const struct mm_struct *mm = task->mm, *leaders = task->group_leader->mm;
	__u64 session_id = meta->session_id;
	struct memory_thread *chosen;

	if (task->pid == task->tgid)
		return mm;
	if (!mm || leaders)
		return false;
	chosen = bpf_task_storage_get(&memory_threads, bpf_get_current_task_btf(), 0,
				      BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!chosen)
		return false;
	if (chosen->session_id != session_id) {
		chosen->session_id = session_id;
		chosen->tid = task->pid;
	}
	return chosen->tid == (__u32)task->pid;
}

#endif
