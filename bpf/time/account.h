/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * account.h: the time account of a thread, written when the thread leaves a CPU. By then it is
 * known when it came to that CPU, and the scheduler itself keeps how long a task has waited for one
 * (sched_info.run_delay); what is left of the time since it left a CPU before is the wait that it
 * went into. So one hook is enough, and wake-ups cost nothing.
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

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS_DEFAULT);
	__type(key, __u32);
	__type(value, struct slot_accounts);
} account_losses SEC(".maps");

/* Private: from `from_ns` on the CPU had threads of one cgroup, until the next stretch. */
struct account_stretch {
	__u64 cgroup_id; /* 0: it was idle */
	__u64 from_ns;
};

#define STRETCHES 128

#define MIX_CGROUPS 4
#define MIX_NS	    1000000 /* at least */
#define MIXES	    128

/* Private: how a CPU was divided before its stretches: from `from_ns` on, until the next mix. */
struct account_mix {
	__u64 from_ns;
	__u64 cgroup_id[MIX_CGROUPS];
	__u64 ns[MIX_CGROUPS]; /* 0: no cgroup */
};

/* Private: the thread that came to a CPU last, and which cgroups had that CPU before. */
struct account_cpu {
	__u64 task;	   /* address of its struct task_struct */
	__u64 since_ns;	   /* when it came; 0: it is of no watch, and was not asked for */
	__u64 queued_from; /* sched_info.last_queued of it then: since when it waited for this CPU
			    */
	__u64 cgroup_id;   /* of it; 0: it is the idle task */
	__u64 set;	   /* its css_set; 0: it is the idle task */
	__u64 set_jiffy;   /* until when slot and cgroup_id hold for that set */
	__u64 jiffy;	   /* until when ahead_ns holds (account_clock.h) */
	__u64 followed_ns; /* when ahead_ns was found; 0: never */
	__s64 ahead_ns;	   /* how far CLOCK_MONOTONIC is ahead of the scheduler's clock */
	__u32 slot;	   /* of its watch, plus 1; 0: it has none */
	__u32 reading;	   /* account_readings then */
	__u32 last;	   /* number of the last stretch */
	__u32 stretches;   /* how many are known, at most STRETCHES */
	__u32 last_mix, mixes; /* likewise */
	struct account_stretch stretch[STRETCHES];
	struct account_mix mix[MIXES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct account_cpu);
} account_cpus SEC(".maps");

/*
 * Private: what account_enter puts into the table, since it is too large for the stack. The first
 * element is of the switches, the other one of the iterator, which a switch may interrupt.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct thread_times);
} account_fresh SEC(".maps");

/* The last number that an ended account got (account_key.ended). */
static __u32 account_ended;

/*
 * Grows with each reading of the iterator, which begins and ends a session: which watch a thread
 * has must be asked again then.
 */
static __u32 account_readings;

/* How the time since account.since_ns splits up. The three are its sum. */
struct account_split {
	__u64 running_ns, queue_ns, rest_ns;
};

/* Returns the smaller one, and 0 instead of a negative number. */
static __always_inline __u64 clamp_ns(__u64 ns, __u64 most_ns)
{
	if ((__s64)ns < 0)
		return 0;
	return ns < most_ns ? ns : most_ns;
}

/* Splits the time by the scheduler's notes about a thread: for so long it ran, and waited. */
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

/* Adds the parts to the account. The time of a preempted thread has no third one. */
static __always_inline void account_add(struct time_account *a, const struct account_split *split)
{
	__u64 kind = a->kind;

	/* Of 64 bits: the verifier of 6.1 forgets the bound of a copy of 32. */
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

/* Whether the session takes no such thread: kernel threads, or a process that matches no rule. */
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

/* Keeps an account that goes on no more under a number of its own: its place is needed. */
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
 * Enters the thread with an account from `since_ns` on; 0: from its birth, because it has not left
 * a CPU yet. Returns NULL where there is no room, with the error of the table.
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
