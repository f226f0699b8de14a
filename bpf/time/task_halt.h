/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * task_halt.h: detects whether a thread is halted from outside, whatever it waited for: by a
 * tracer, a stop signal or a freezer. Sources: include/linux/sched.h, include/linux/sched/jobctl.h.
 */
#ifndef TROCAR_BPF_TIME_TASK_HALT_H
#define TROCAR_BPF_TIME_TASK_HALT_H

#include <linux/types.h>
#include <stdbool.h>

#include "shared/abi/abi.h"

/* Bits of __state. TASK_FROZEN: by the freezer of cgroup v1, or of a suspend (kernel/freezer.c). */
#define TASK_STOPPED 0x00000004u
#define TASK_TRACED  0x00000008u
#define TASK_FROZEN  0x00008000u

/*
 * Bit of jobctl: the task's cgroup is frozen (cgroup.freeze). With task_struct.frozen set the
 * thread is halted.
 */
#define JOBCTL_TRAP_FREEZE (1ul << 23)

/*
 * Returns ACCOUNT_TRACED, ACCOUNT_STOPPED or ACCOUNT_FROZEN; 0: the thread is not halted. `frozen`
 * alone is not enough: it is also set for a thread that is stopped or waits in vfork(2)
 * (kernel/cgroup/freezer.c).
 */
static __always_inline __u32 task_halt(unsigned int state, unsigned long jobctl, bool frozen)
{
	if (state & TASK_TRACED)
		return ACCOUNT_TRACED;
	if (state & TASK_STOPPED)
		return ACCOUNT_STOPPED;
	return state & TASK_FROZEN || (jobctl & JOBCTL_TRAP_FREEZE && frozen) ? ACCOUNT_FROZEN : 0;
}

#endif
