/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lock_key.h: finds the lock that a thread waits for, from the arguments of its system call. */
#ifndef TROCAR_BPF_LOCKS_LOCK_KEY_H
#define TROCAR_BPF_LOCKS_LOCK_KEY_H

#include <asm/unistd.h>
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel/kernel.h"
#include "shared/abi/abi.h"

/* The operations of futex(2) that inherit priority (uapi futex.h). */
#define FUTEX_LOCK_PI	      6
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2	      13
#define FUTEX_COMMAND	      0x7fu /* without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */

/* Newer than some headers. The numbers are equal on all architectures. */
#define CALL_FUTEX_WAITV 449
#define CALL_FUTEX_WAIT	 455

static __always_inline __u32 lock_kind_of_futex(__u64 operation)
{
	__u32 command = operation & FUTEX_COMMAND;

	return command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2 ||
			       command == FUTEX_WAIT_REQUEUE_PI
		       ? LOCK_PI
		       : LOCK_FUTEX;
}

/* Sets kind and address from the system call number and its first two arguments. */
static __always_inline void lock_key_of_call(struct lock_key *key, int call, __u64 first,
					     __u64 second)
{
	key->address = 0;
	key->kind = LOCK_OTHER;
	if (call == __NR_futex) {
		key->kind = lock_kind_of_futex(second);
		key->address = first;
	} else if (call == CALL_FUTEX_WAIT) {
		key->kind = LOCK_FUTEX;
		key->address = first;
	} else if (call == CALL_FUTEX_WAITV) {
		key->kind = LOCK_SEVERAL;
	} else if (call == __NR_flock || call == __NR_fcntl) {
		key->kind = LOCK_FILE;
	} else if (call == __NR_semop || call == __NR_semtimedop) {
		key->kind = LOCK_SEMAPHORE;
	}
}

/* Returns the user stack pointer with which the thread returns from its system call. */
static __always_inline __u64 lock_key_stack(struct task_struct *task)
{
	const struct pt_regs___lock *regs = (const void *)bpf_task_pt_regs(task);

	return regs->sp;
}

/*
 * Sets all members of the key of the lock that `task` waits for. The task sleeps in a system call
 * and is in the watch of `slot`. The address is the number that the program passed to the kernel;
 * no BPF program reads memory there.
 */
static __always_inline void lock_key_find(struct lock_key *key, struct task_struct *task,
					  __u32 slot)
{
	const struct pt_regs___lock *regs = (const void *)bpf_task_pt_regs(task);

	key->tgid = task->tgid;
	key->slot = slot;
	key->pad = 0;
#if defined(__TARGET_ARCH_x86)
	lock_key_of_call(key, (int)regs->orig_ax, regs->di, regs->si);
#else
	lock_key_of_call(key, regs->syscallno, regs->orig_x0, regs->regs[1]);
#endif
}

#endif
