/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * account_clock.h: returns the time of a context switch. The scheduler has just read its clock for
 * this switch and stores it in the CPU's run queue, which a task leads to by plain loads. Reading
 * CLOCK_MONOTONIC takes longer than all the rest of the switch program. So that clock is read once
 * per jiffy, to follow how far it is ahead.
 */
#ifndef TROCAR_BPF_TIME_ACCOUNT_CLOCK_H
#define TROCAR_BPF_TIME_ACCOUNT_CLOCK_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel_cast.h"
#include "bpf/time/account.h"

/*
 * The clocks drift apart by less than 1 ns in (1 << CLOCK_DRIFT_SHIFT) ns. The limit of NTP is 1 in
 * 2000.
 */
#define CLOCK_DRIFT_SHIFT 10

/*
 * Updates how far CLOCK_MONOTONIC is ahead of the scheduler's clock. `clock` was read a short time
 * ago, or longer if a hypervisor took the CPU in between. So the measured difference is too large
 * by an unknown time, and the smallest value that the drift allows is correct.
 */
static __noinline int account_clock_follow(struct account_cpu *cpu, __u64 clock, __u64 jiffy)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__s64 ahead_ns = (__s64)(now_ns - clock);
	__s64 later_ns = (__s64)((now_ns - cpu->followed_ns) >> CLOCK_DRIFT_SHIFT);

	if (cpu->followed_ns && ahead_ns > cpu->ahead_ns + later_ns)
		ahead_ns = cpu->ahead_ns + later_ns;
	cpu->ahead_ns = ahead_ns;
	cpu->followed_ns = now_ns;
	cpu->jiffy = jiffy;
	return 0;
}

/* Returns CLOCK_MONOTONIC at the switch in which `prev` leaves this CPU. */
static __always_inline __u64 account_clock_now(struct account_cpu *cpu, struct task_struct *prev)
{
	__u64 jiffy = bpf_jiffies64(), clock;

	if (!bpf_core_field_exists(prev->se.cfs_rq) ||
	    !bpf_core_field_exists(((struct cfs_rq *)0)->rq) ||
	    !bpf_core_field_exists(((struct rq *)0)->clock))
		return bpf_ktime_get_ns();
	clock = kernel_cast_task(prev)->se.cfs_rq->rq->clock;
	if (cpu->jiffy != jiffy)
		account_clock_follow(cpu, clock, jiffy);
	return clock + (__u64)cpu->ahead_ns;
}

#endif
