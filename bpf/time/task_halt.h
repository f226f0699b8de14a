/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * task_halt.h: what halts a thread from outside, whatever it waited for: a tracer, a signal that
 * stops, a freezer. Sources: include/linux/sched.h, include/linux/sched/jobctl.h.
 */
#ifndef TROCAR_BPF_TIME_TASK_HALT_H
#define TROCAR_BPF_TIME_TASK_HALT_H

#include <linux/types.h>
#include <stdbool.h>

#include "shared/abi/abi.h"

/* Of __state. Frozen: by the freezer of cgroup v1, or of a suspend (kernel/freezer.c). */
#define TASK_STOPPED 0x00000004u
#define TASK_TRACED  0x00000008u
#define TASK_FROZEN  0x00008000u

/* Of jobctl: its cgroup is frozen (cgroup.freeze); with task_struct.frozen the thread stands. */
#define JOBCTL_TRAP_FREEZE (1ul << 23)

/*
 * Returns ACCOUNT_TRACED, ACCOUNT_STOPPED or ACCOUNT_FROZEN; 0: nothing halts it. `frozen` alone is
 * also set of one that is stopped, or waits in vfork(2) (kernel/cgroup/freezer.c).
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
