/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tick_call.h: finds which system call a tick interrupted, and whether it interrupted a memory
 * stall. The number of the call is in the registers that the thread saved as it entered the kernel.
 * An interrupt or a fault of user mode leaves -1 there.
 */
#ifndef TROCAR_BPF_CPU_TICK_CALL_H
#define TROCAR_BPF_CPU_TICK_CALL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "shared/abi/abi.h"

/*
 * Returns whether the system call is a 32-bit one. A 64-bit process can make such a call too, by
 * int 0x80, and then the numbers are the 32-bit ones.
 */
static __always_inline bool tick_call_is_compat(const struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	if (task->thread_info.status & TS_COMPAT)
		return true;
#endif
	return task->thread_info.flags & TIF_COMPAT;
}

/* Returns sample.call of a tick that interrupted `task`, in user mode or not. */
static __always_inline __u32 tick_call_number(struct task_struct *task, bool in_user)
{
	const struct pt_regs *regs;
	int call;

	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return ACCOUNT_CALL_KERNEL;
	if (in_user)
		return ACCOUNT_CALL_NONE;
	regs = (const struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	call = (int)regs->orig_ax;
#else
	call = regs->syscallno;
#endif
	if (call < 0)
		return ACCOUNT_CALL_NONE;
	return tick_call_is_compat(task) ? ACCOUNT_CALL_COMPAT : (__u32)call;
}

/*
 * Returns SAMPLE_MEMORY_STALL if `task` runs in a memory stall as PSI counts it: it reclaims or
 * compacts memory, or reads evicted pages back.
 */
static __always_inline __u32 tick_call_stall(const struct task_struct *task)
{
	if (!bpf_core_field_exists(task->psi_flags))
		return 0;
	return task->psi_flags & TSK_MEMSTALL ? SAMPLE_MEMORY_STALL : 0;
}

#endif
