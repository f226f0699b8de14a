/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lock_herd.h: recognises threads that were woken together for one lock and soon wait for it again.
 * All checks run at wake-ups: a thread has had one wait between two of them if its count of
 * voluntary switches grew by one, and its time account has its running time.
 */
#ifndef TROCAR_BPF_LOCKS_LOCK_HERD_H
#define TROCAR_BPF_LOCKS_LOCK_HERD_H

#include <asm/unistd.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel/kernel.h"
#include "bpf/maps/maps.h"
#include "shared/abi/abi.h"

#define CALL_FUTEX_WAKE 454 /* newer than some headers */

/*
 * Returns whether `current` asked a futex call to wake at most one thread: the third argument of
 * each of these calls is the number. A thread that wakes several threads by several calls does not
 * cause useless wake-ups.
 */
static __always_inline bool lock_herd_wakes_one(struct task_struct *current)
{
	const struct pt_regs___lock *regs = (const void *)bpf_task_pt_regs(current);
#if defined(__TARGET_ARCH_x86)
	int call = (int)regs->orig_ax;
	__u32 count = regs->dx;
#else
	int call = regs->syscallno;
	__u32 count = regs->regs[2];
#endif

	return (call == __NR_futex || call == CALL_FUTEX_WAKE) && count <= 1;
}

/* Two locks of a process collide once in four billion. Never 0. */
static __always_inline __u32 lock_herd_hash(const struct lock_key *key)
{
	return ((__u32)key->address ^ (__u32)(key->address >> 32)) + key->kind * 0x9e3779b2u | 1;
}

/* Returns whether the thread has woken a waiter for the lock since it was itself woken for it. */
static __always_inline bool lock_herd_had_it(const struct lock_sums *sums, __u32 tid, __u32 woken)
{
	__u64 number = READ_WORD(sums->next_reign);
	const struct lock_reign *last = &sums->reigns[(number - 1) % LOCK_REIGNS];
	const struct lock_reign *before = &sums->reigns[(number - 2) % LOCK_REIGNS];
	__u32 since = READ_WORD(last->since_ns) >> LOCK_HERD_SHIFT;

	return READ_WORD(before->tid) == tid && (__s32)(since - woken) >= 0;
}

/*
 * Counts the wait of `task` that ends at `now_ns` if the thread had been woken together with other
 * threads before that wait, and records in its account `t` whether this wake-up is one of several
 * (`together`). The account does not include this wait yet.
 */
static __always_inline void lock_herd_note(struct thread_times *t, struct task_struct *task,
					   struct lock_sums *sums, const struct lock_key *key,
					   __u64 now_ns, bool together)
{
	struct thread_herd *herd = &t->herd;
	__u32 running, hash, switches;

	if (!herd->lock && !together)
		return;
	running = READ_WORD(t->account.part_ns[ACCOUNT_RUNNING]) >> LOCK_HERD_SHIFT;
	hash = lock_herd_hash(key);
	switches = task->nvcsw;
	if (herd->lock == hash && switches - herd->switches == 1 &&
	    running - herd->running <= LOCK_HERD_NS >> LOCK_HERD_SHIFT &&
	    !lock_herd_had_it(sums, task->pid, herd->woken))
		__sync_fetch_and_add(&sums->again, 1);
	herd->lock = together ? hash : 0;
	if (!together)
		return;
	herd->switches = switches;
	herd->running = running;
	herd->woken = now_ns >> LOCK_HERD_SHIFT;
}

#endif
