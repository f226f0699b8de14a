/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* look_halt.h: detects whether a thread is halted from outside. */
#ifndef TROCAR_BPF_WAITS_LOOK_HALT_H
#define TROCAR_BPF_WAITS_LOOK_HALT_H

#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/time/task_halt.h"
#include "shared/abi/abi.h"

/* Returns the flag (LOOK_HALTED) for a halt of the thread, or 0. `state`: its __state. */
static __always_inline __u32 look_halt(const struct task_struct *task, __u32 state)
{
	switch (task_halt(state, BPF_CORE_READ(task, jobctl),
			  BPF_CORE_READ_BITFIELD_PROBED(task, frozen))) {
	case ACCOUNT_TRACED:
		return LOOK_TRACED;
	case ACCOUNT_STOPPED:
		return LOOK_STOPPED;
	case ACCOUNT_FROZEN:
		return LOOK_FROZEN;
	default:
		return 0;
	}
}

#endif
