/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * interrupt.h: detects whether a tracepoint program runs in an interrupt. In an interrupt the
 * current task is unrelated: it only had the CPU when a timer, a device or another CPU interrupted
 * it.
 *
 * On x86-64 the preempt count is a per-CPU variable, which a program finds only in a kernel with
 * CONFIG_KALLSYMS_ALL. But an interrupt of kernel mode, and a softirq, run on a per-CPU stack and
 * not on the task's (arch/x86/include/asm/irq_stack.h), and the arguments of a tracepoint are on
 * the stack of its caller. An interrupt of user mode stays on the task's stack; there the entry
 * code leaves no system call number. A task killed by a signal has none either, and it wakes the
 * waiters of its robust futexes.
 */
#ifndef TROCAR_BPF_MAPS_INTERRUPT_H
#define TROCAR_BPF_MAPS_INTERRUPT_H

#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel/kernel.h"

#if defined(__TARGET_ARCH_x86)
#define THREAD_STACK_BYTES 16384 /* THREAD_SIZE */

/* Returns true in a hard or soft interrupt. `ctx` is the first argument of the program. */
static __always_inline bool interrupt_is(void *ctx)
{
	const struct task_struct___lock *task = (const void *)bpf_get_current_task_btf();
	const struct pt_regs___lock *regs;
	void *volatile spilled = ctx;
	__u64 at = 0;

	/* The verifier treats a pointer that was read from memory as a number. */
	bpf_probe_read_kernel(&at, sizeof(at), (void *)&spilled);
	if (at - (__u64)task->stack >= THREAD_STACK_BYTES)
		return true;
	if (task->flags & (PF_KTHREAD | PF_EXITING))
		return false;
	regs = (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return (long)regs->orig_ax == -1;
}
#else
/*
 * Bits of the preempt count (include/linux/preempt.h): in a softirq, in a hard interrupt, in NMI.
 */
#define PREEMPT_INTERRUPTS (0x00000100u | 0x000f0000u | 0x00f00000u)

static __always_inline bool interrupt_is(void *ctx)
{
	const struct task_struct___lock *task = (const void *)bpf_get_current_task_btf();

	return BPF_CORE_READ(task, thread_info.preempt.count) & PREEMPT_INTERRUPTS;
}
#endif

#endif
