/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_runtime.h: kernel structures and fields that the walks over language runtimes read,
 * declared as in kernel.h. Sources: include/linux/{sched,sched/signal}.h of Linux 6.1 to 7.2.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_RUNTIME_H
#define TROCAR_BPF_KERNEL_KERNEL_RUNTIME_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct signal_struct___runtime {
	struct list_head thread_head; /* of the threads, by thread_node */
};

struct task_struct___runtime {
	int on_cpu;
	unsigned int personality;
	struct signal_struct___runtime *signal;
	struct list_head thread_node;
};

#pragma clang attribute pop

#define READ_IMPLIES_EXEC 0x0400000u /* in task_struct.personality */

/* Returns the thread pointer of user mode at the thread's last switch; 0 on other machines. */
static __always_inline __u64 task_thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread.fsbase);
#else
	return 0;
#endif
}

#endif
