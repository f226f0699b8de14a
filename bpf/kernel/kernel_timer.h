/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_timer.h: the timer structures that the programs read, declared as in kernel.h. Read them
 * with BPF_CORE_READ only.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_TIMER_H
#define TROCAR_BPF_KERNEL_KERNEL_TIMER_H

#include "bpf/kernel/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hrtimer_cpu_base;

struct hrtimer_clock_base {
	struct hrtimer_cpu_base *cpu_base; /* the CPU base that contains this clock base */
	int clockid;
	long long offset; /* offset of its clock from CLOCK_MONOTONIC */
};

struct hrtimer {
	long long _softexpires; /* on its clock */
	struct hrtimer_clock_base *base;
	unsigned char state; /* bit 0: the timer is active. Linux 7.3 has is_queued instead */
};

struct hrtimer___flags { /* Linux 7.3 */
	bool is_queued;
};

/* On the kernel stack of a thread that sleeps. */
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
