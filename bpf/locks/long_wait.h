/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * long_wait.h: records each long wait of a watched thread as it ends: its begin, its kind, and its
 * waker. The begin is in the thread's time account. Sums are not enough: the wait is explained by
 * the activity of the awaited thread in that time, not by its activity over the whole session.
 *
 * This code runs at every wake-up of a watched thread, and most of these end short waits. A short
 * wait costs at most one clock read, and only for a few wake-ups in each jiffy.
 */
#ifndef TROCAR_BPF_LOCKS_LONG_WAIT_H
#define TROCAR_BPF_LOCKS_LONG_WAIT_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/locks/lock_stack.h"
#include "bpf/maps/interrupt.h"
#include "bpf/maps/maps.h"
#include "bpf/maps/table.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_answers.h"

/* Bits of __state: any signal wakes the task; a fatal signal wakes it. */
#define TASK_INTERRUPTIBLE 0x00000001u
#define TASK_WAKEKILL	   0x00000100u

/* Empty, without memory, outside sessions. The consumer empties it. */
MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, long_waits, __u32, struct long_wait, LONG_WAITS_DEFAULT);

/* The number of the next wait. */
static __u32 long_wait_number;

/*
 * Returns the current time if a wait since `since_ns` has lasted for at least LONG_WAIT_NS; 0 if it
 * is shorter, or if its length was not checked. Reading the clock costs as much as all the rest
 * here. So once the clock was read in this jiffy, and LONG_WAIT_ASKED waits in the window were
 * short, it is read again only for a wait that was already long at that last read.
 */
static __always_inline __u64 long_wait_now(struct watch_answers *answers, __u64 since_ns)
{
	__u64 jiffy = bpf_jiffies64(), now_ns;

	if (answers->clock_jiffy == jiffy && answers->asked >= LONG_WAIT_ASKED &&
	    (__s64)(answers->clock_ns - since_ns) < (__s64)LONG_WAIT_NS)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (now_ns - answers->window_ns >= LONG_WAIT_WINDOW_NS) {
		answers->window_ns = now_ns;
		answers->asked = 0;
	}
	answers->clock_jiffy = jiffy;
	answers->clock_ns = now_ns;
	if ((__s64)(now_ns - since_ns) >= (__s64)LONG_WAIT_NS)
		return now_ns;
	answers->asked++;
	return 0;
}

/* Returns whether a signal that the thread does not block is pending for it or for its process. */
static __always_inline bool long_wait_has_signal(struct task_struct *task)
{
	const struct task_struct___lock *fields = (const void *)task;
	unsigned long all = fields->pending.signal.sig[0] |
			    BPF_CORE_READ(fields, signal, shared_pending.signal.sig[0]);

	return all & ~fields->blocked.sig[0];
}

/*
 * Returns how the wait of `task` ends (enum long_wait_end). `ctx` is the first argument of the
 * program. A thread that no signal can wake may have a signal pending.
 */
static __always_inline __u32 long_wait_end(void *ctx, struct task_struct *task)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if (long_wait_has_signal(task) && task->__state & (TASK_INTERRUPTIBLE | TASK_WAKEKILL))
		return LONG_WAIT_SIGNAL;
	if (interrupt_is(ctx))
		return LONG_WAIT_INTERRUPT;
	return current->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER) ? LONG_WAIT_KERNEL
									     : LONG_WAIT_THREAD;
}

/*
 * Counts a wait that was lost because the table had no space, in the slot's watch and in the
 * watches around it.
 */
static __noinline int long_wait_lose(__u32 index, __u64 ns, int error)
{
	struct slot_locks *losses;
	const struct slot *slot;

	losses_for_each (losses, lock_losses, slot, index) {
		losses->long_waits++;
		losses->long_wait_ns += ns;
		if (table_was_short(error))
			losses->long_no_memory++;
	}
	return 0;
}

/*
 * Records a wait of `task` that ends now. The caller has set the times, address, slot and part of
 * `wait`. A signal from an interrupt has no sender.
 */
static __noinline int long_wait_note(void *ctx, struct task_struct *task, struct long_wait *wait)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u32 number = __sync_fetch_and_add(&long_wait_number, 1);
	int error;

	wait->tid = task->pid;
	wait->tgid = task->tgid;
	wait->end = long_wait_end(ctx, task);
	if (wait->end != LONG_WAIT_INTERRUPT && !interrupt_is(ctx) && scope_allows_task(current)) {
		wait->by_tid = current->pid;
		bpf_get_current_comm(wait->by_comm, sizeof(wait->by_comm));
	}
	error = table_add(&long_waits, TABLE_LONG_WAITS, wait->slot, &number, wait);
	if (error)
		return long_wait_lose(wait->slot, wait->end_ns - wait->begin_ns, error);
	return 0;
}

#endif
