/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_timer.h: what is read of the timers that threads sleep by, beside kernel.h. Only by
 * BPF_CORE_READ.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_TIMER_H
#define TROCAR_BPF_KERNEL_KERNEL_TIMER_H

#include "bpf/kernel/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hrtimer_cpu_base;

struct hrtimer_clock_base {
	struct hrtimer_cpu_base *cpu_base; /* in which it lies itself */
	int clockid;
	long long offset; /* of its clock from CLOCK_MONOTONIC */
};

struct hrtimer {
	long long _softexpires; /* by its clock */
	struct hrtimer_clock_base *base;
	unsigned char state; /* bit 0: it runs. Linux 7.3 has is_queued */
};

struct hrtimer___flags { /* as Linux 7.3 has it */
	bool is_queued;
};

/* It lies on the kernel stack of a thread that sleeps. */
struct hrtimer_sleeper {
	struct hrtimer timer;
	struct task_struct *task;
};

struct timerfd_ctx {
	union {
		struct hrtimer tmr;
	} t;
	int clockid;
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct___timer {
	unsigned long sp;
};
#else
struct cpu_context {
	unsigned long sp;
};

struct thread_struct___timer {
	struct cpu_context cpu_context;
};
#endif

struct task_struct___timer {
	struct thread_struct___timer thread;
};

#pragma clang attribute pop

#endif
