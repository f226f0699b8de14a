/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_timer.h: finds the timer that a thread waits for, its clock and its remaining time. The
 * timer of a timerfd is found through the descriptor. The timer of nanosleep and similar calls is
 * on the kernel stack of the thread, among the words above its stack pointer. Two properties
 * identify it there, which no other object has: it names this thread, and its clock base is inside
 * the structure that the clock base itself names. The words read there do not leave this code: only
 * the number of the clock and the time are reported.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_TIMER_H
#define TROCAR_BPF_WAITS_LOOK_TIMER_H

#include <linux/time.h>

#include "bpf/kernel/kernel_timer.h"
#include "bpf/waits/look_memory.h"

#define TIMERFD_NAME	 "[timerfd]"
#define LOOK_TIMER_WORDS 128 /* words of the kernel stack; the sleeper is some 50 above its end */
#define HRTIMER_ENQUEUED 1u
#define HRTIMER_BASES	 2048u /* more than the bytes of one CPU's clock bases */

/* Returns whether an anonymous inode is a timerfd. The kernel sets its name. */
static __always_inline bool look_is_timerfd(const struct look_on *on)
{
	static const char name[sizeof(TIMERFD_NAME)] = TIMERFD_NAME;

	for (__u32 i = 0; i < sizeof(name); i++)
		if (on->name[i] != name[i])
			return false;
	return true;
}

static __always_inline bool look_timer_runs(const struct hrtimer *timer)
{
	const struct hrtimer___flags *flags = (const void *)timer;

	if (bpf_core_field_exists(flags->is_queued))
		return BPF_CORE_READ(flags, is_queued);
	return BPF_CORE_READ(timer, state) & HRTIMER_ENQUEUED;
}

/*
 * Reports the timer at `timer`, which may be any memory. Returns whether it is an active timer: its
 * clock base is inside the object that the clock base names.
 */
static __always_inline bool look_read_timer(struct look_on *on, const struct hrtimer *timer)
{
	const struct hrtimer_clock_base *base = BPF_CORE_READ(timer, base);
	__u64 owner = (__u64)BPF_CORE_READ(base, cpu_base);
	__s64 left_ns;

	if (!owner || (__u64)base - owner > HRTIMER_BASES || !look_timer_runs(timer))
		return false;
	left_ns = BPF_CORE_READ(timer, _softexpires) - BPF_CORE_READ(base, offset) -
		  (__s64)bpf_ktime_get_ns();
	on->number = BPF_CORE_READ(base, clockid);
	on->state = 1;
	on->longest_ns = 0;
	if (left_ns > 0)
		on->longest_ns = left_ns;
	return true;
}

/*
 * Checks word `i` of looker.frames: it may point to the sampled thread. Returns 1 if the timer is
 * found.
 */
static long look_try_sleeper(__u32 i, void *context)
{
	struct looker *l = *(struct looker **)context;
	__u64 word;

	if (i >= LOOK_TIMER_WORDS)
		return 1;
	word = *(__u64 *)&l->frames[i * sizeof(__u64)];
	if (word != l->task)
		return 0;
	word = l->stack + i * sizeof(__u64) -
	       bpf_core_field_offset(((struct hrtimer_sleeper *)0)->task);
	return look_read_timer(&l->record.on, (const void *)word);
}

/*
 * Finds the timer of the sampled thread, which sleeps, below looker.stack_end. Without a timer
 * on.number keeps its value from the thread's arguments. A global function: the verifier checks it
 * once.
 */
__noinline int look_at_sleep(void)
{
	struct looker *l = looker_get();
	const struct task_struct___timer *task;
	__u64 bytes;

	if (!l)
		return 0;
	task = (const void *)l->task;
#if defined(__TARGET_ARCH_x86)
	l->stack = BPF_CORE_READ(task, thread.sp);
#else
	l->stack = BPF_CORE_READ(task, thread.cpu_context.sp);
#endif
	if (l->stack_end <= l->stack || !bpf_core_type_exists(struct hrtimer_sleeper))
		return 0;
	bytes = l->stack_end - l->stack;
	asm volatile("" : "+r"(bytes));
	if (bytes > LOOK_TIMER_WORDS * sizeof(__u64))
		bytes = LOOK_TIMER_WORDS * sizeof(__u64);
	/* The buffer is free here: the frames of the thread's stacks are written later. */
	if (!bpf_probe_read_kernel(l->frames, bytes, (const void *)l->stack))
		bpf_loop(bytes / sizeof(__u64), look_try_sleeper, &l, 0);
	return 0;
}

/* Reports the timer of the file in looker.epoll.file. */
static __always_inline void look_at_timerfd(struct looker *l)
{
	const struct file *file = (const void *)l->epoll.file;
	const struct timerfd_ctx *timer = BPF_CORE_READ(file, private_data);
	struct look_on *on = &l->record.on;

	if (!bpf_core_type_exists(struct timerfd_ctx))
		return;
	on->number = BPF_CORE_READ(timer, clockid);
	/* The alarm clocks, which wake the machine, have another kind of timer. */
	if (on->number != CLOCK_REALTIME_ALARM && on->number != CLOCK_BOOTTIME_ALARM)
		look_read_timer(on, &timer->t.tmr);
}

#endif
