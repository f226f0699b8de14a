/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * account.h: the time account of a thread, written when the thread leaves a CPU. At that time it is
 * known when the thread got that CPU, and the scheduler itself counts how long a task has waited
 * for a CPU (sched_info.run_delay). The rest of the time since the thread last left a CPU is the
 * wait that it went to sleep for. So one hook is enough, and wake-ups cost nothing.
 */
#ifndef TROCAR_BPF_TIME_ACCOUNT_H
#define TROCAR_BPF_TIME_ACCOUNT_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/discovery/target_match.h"
#include "bpf/kernel/kernel.h"
#include "bpf/kernel/kernel_cast.h"
#include "bpf/maps/maps.h"
#include "bpf/maps/task_keys.h"
#include "bpf/time/account_find.h"
#include "bpf/watch/watch_lookup.h"

MAP(PERCPU_ARRAY, account_losses, __u32, struct slot_accounts, SLOTS_DEFAULT);

/* Private: from `from_ns` until the next interval, the CPU ran threads of one cgroup. */
struct account_stretch {
	__u64 cgroup_id; /* 0: it was idle */
	__u64 from_ns;
};

#define STRETCHES 128

#define MIX_CGROUPS 4
#define MIX_NS	    1000000 /* minimum length of a mix */
#define MIXES	    128

/*
 * Private: how the time of a CPU before its recorded intervals was divided, from `from_ns` until
 * the next mix.
 */
struct account_mix {
	__u64 from_ns;
	__u64 cgroup_id[MIX_CGROUPS];
	__u64 ns[MIX_CGROUPS]; /* 0: unused entry */
};

/* Private: the thread that got the CPU last, and the cgroups that had the CPU before. */
struct account_cpu {
	__u64 task;	   /* address of its struct task_struct */
	__u64 since_ns;	   /* when it got the CPU; 0: it has no watch, so the clock was not read */
	__u64 queued_from; /* its sched_info.last_queued then: begin of its wait for this CPU */
	__u64 cgroup_id;   /* its cgroup; 0: the idle task */
	__u64 set;	   /* its css_set; 0: the idle task */
	__u64 set_jiffy;   /* the jiffy in which slot and cgroup_id are valid for that set */
	__u64 jiffy;	   /* the jiffy in which ahead_ns is valid (account_clock.h) */
	__u64 followed_ns; /* when ahead_ns was computed; 0: never */
	__s64 ahead_ns;	   /* CLOCK_MONOTONIC minus the scheduler's clock */
	__u32 slot;	   /* of its watch, plus 1; 0: no watch */
	__u32 reading;	   /* value of account_readings then */
	__u32 last;	   /* number of the last interval */
	__u32 stretches;   /* number of known intervals, at most STRETCHES */
	__u32 last_mix, mixes; /* the last and the number of mixes, at most MIXES */
	struct account_stretch stretch[STRETCHES];
	struct account_mix mix[MIXES];
};

MAP(PERCPU_ARRAY, account_cpus, __u32, struct account_cpu, 1);

/*
 * Private: the new account that account_enter inserts, which is too large for the stack. The first
 * element is for the switch program, the second one for the iterator, which a switch may interrupt.
 */
MAP(PERCPU_ARRAY, account_fresh, __u32, struct thread_times, 2);

/* The next number for an ended account (account_key.ended). */
static __u32 account_ended;

/*
 * Incremented at each pass of the iterator, which begins or ends a session: then the watch of each
 * thread must be looked up again.
 */
static __u32 account_readings;

/* The parts of the time since account.since_ns. Their sum is that time. */
struct account_split {
	__u64 running_ns, queue_ns, rest_ns;
};

/* Returns the smaller value, or 0 if `ns` is negative. */
static __always_inline __u64 clamp_ns(__u64 ns, __u64 most_ns)
{
	if ((__s64)ns < 0)
		return 0;
	return ns < most_ns ? ns : most_ns;
}

/*
 * Splits the time since account.since_ns by the scheduler's data about the thread: `running_ns` on
 * a CPU and `queue_ns` waiting for one. Both are limited to that time.
 */
static __always_inline void account_split_time(const struct time_account *a, __u64 now_ns,
					       __u64 running_ns, __u64 queue_ns,
					       struct account_split *ret_split)
{
	__u64 all_ns = now_ns - a->since_ns;

	if ((__s64)all_ns < 0)
		all_ns = 0;
	ret_split->running_ns = clamp_ns(running_ns, all_ns);
	all_ns -= ret_split->running_ns;
	ret_split->queue_ns = clamp_ns(queue_ns, all_ns);
	ret_split->rest_ns = all_ns - ret_split->queue_ns;
}

/* Adds the parts to the account. The rest_ns of a preempted thread is 0. */
static __always_inline void account_add(struct time_account *a, const struct account_split *split)
{
	__u64 kind = a->kind;

	/* 64 bits: the verifier of 6.1 forgets the bound of a 32-bit copy. */
	asm volatile("" : "+r"(kind));
	a->part_ns[ACCOUNT_RUNNING] += split->running_ns;
	a->part_ns[ACCOUNT_QUEUE] += split->queue_ns;
	if (kind >= ACCOUNT_PARTS_)
		kind = ACCOUNT_OTHER;
	a->part_ns[kind] += split->rest_ns;
	a->since_ns += split->running_ns + split->queue_ns + split->rest_ns;
	if (kind > ACCOUNT_QUEUE && split->rest_ns > a->longest_ns) {
		a->longest_ns = split->rest_ns;
		a->longest_kind = kind;
	}
}

/*
 * Returns whether the session excludes the thread: a kernel thread, or a process that matches no
 * rule.
 */
static __noinline bool account_leaves_out(struct task_struct *task, __u32 index)
{
	const struct slot *slot = bpf_map_lookup_elem(&slots, &index);
	const struct control *c = control_get();
	struct target_match match;
	struct process_key key;
	__u32 flags;

	if (!slot || !c)
		return true;
	flags = READ_WORD(slot->flags);
	if (flags & SLOT_NO_KTHREADS && task->flags & PF_KTHREAD)
		return true;
	if (!(flags & SLOT_BY_PROCESS))
		return false;
	task_keys_process(kernel_cast_task(task), &key);
	target_match_find(task, bpf_map_lookup_elem(&targets, &key), c, &match);
	return !match.matched;
}

/*
 * Moves an account that ends to a key with its own number, because the tid's element is needed for
 * another one.
 */
static __noinline void account_retire(const struct account_key *key, struct thread_times *t,
				      __u32 flags)
{
	struct account_key old = { .tid = key->tid };
	__u32 slot = t->account.slot;

	t->account.flags |= ACCOUNT_ENDED | flags;
	old.ended = __sync_fetch_and_add(&account_ended, 1) | 1u << 31;
	table_add(&accounts, TABLE_ACCOUNTS, slot, &old, t);
	account_remove(key, slot);
}

/*
 * Creates the account of the thread from `since_ns` on; 0: from its birth, because it has not left
 * a CPU yet. Returns NULL if the table has no space; *ret_error is then the error of the table.
 */
static __noinline struct thread_times *account_enter(struct task_struct *task, __u32 index,
						     __u64 since_ns, __u32 reads, int *ret_error)
{
	struct thread_times *t = bpf_map_lookup_elem(&account_fresh, &reads);
	struct account_key key = { .tid = task->pid };
	struct time_account *a;

	if (!t)
		return 0;
	a = &t->account;
	a->slot = index;
	a->kind = ACCOUNT_QUEUE;
	a->born_ns = task->start_time;
	a->first_ns = a->since_ns = since_ns ? since_ns : a->born_ns;
	a->waited_ns = since_ns ? task->sched_info.run_delay : 0;
	a->tgid = task->tgid;
	a->start_ns = task_keys_read_start(task);
	__builtin_memcpy(a->comm, task->comm, COMM_BYTES);
	return account_add_new(&key, t, ret_error);
}

#endif
