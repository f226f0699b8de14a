/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * account_queue.h: how threads waited for a CPU, and which cgroups had the CPU in that time. There
 * is no hook at the begin of a wait. But when a thread gets a CPU, the scheduler knows when its
 * wait for that CPU began, and each CPU records which cgroups it ran last: so the wait is split up
 * when it is over. Cgroups that alternate every few microseconds would fill the record within one
 * wait: older intervals are merged into sums per millisecond (mixes).
 */
#ifndef TROCAR_BPF_TIME_ACCOUNT_QUEUE_H
#define TROCAR_BPF_TIME_ACCOUNT_QUEUE_H

#include "bpf/maps/table.h"
#include "bpf/maps/time_bucket.h"
#include "bpf/time/account.h"

/* Not preallocated, as `accounts`. */
MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, queue_neighbours, struct queue_neighbour, __u64,
	  QUEUE_NEIGHBOURS_MAX);

/*
 * Adds an interval that is older than all known ones to the mixes. A mix keeps MIX_CGROUPS cgroups;
 * the time of a further one is dropped.
 */
static __always_inline void account_mix_add(struct account_cpu *cpu,
					    const struct account_stretch *s, __u64 until_ns)
{
	struct account_mix *m = &cpu->mix[cpu->last_mix % MIXES];
	__u64 ns = until_ns - s->from_ns;

	/* The clock is an estimate and may go back a little (account_clock.h). */
	if ((__s64)ns <= 0)
		return;
	if (!cpu->mixes || s->from_ns - m->from_ns >= MIX_NS) {
		cpu->last_mix++;
		m = &cpu->mix[cpu->last_mix % MIXES];
		__builtin_memset(m, 0, sizeof(*m));
		m->from_ns = s->from_ns;
		if (cpu->mixes < MIXES)
			cpu->mixes++;
	}
	for (int i = 0; i < MIX_CGROUPS; i++)
		if (!m->ns[i] || m->cgroup_id[i] == s->cgroup_id) {
			m->cgroup_id[i] = s->cgroup_id;
			m->ns[i] += ns;
			return;
		}
}

/*
 * Records that the CPU switches to a thread of another cgroup; 0: it becomes idle. While the CPU
 * stays with one cgroup, nothing is written and the clock is not read.
 */
static __always_inline void account_queue_note(struct account_cpu *cpu, __u64 cgroup_id,
					       __u64 now_ns)
{
	struct account_stretch *s;

	cpu->last++;
	s = &cpu->stretch[cpu->last % STRETCHES];
	if (cpu->stretches < STRETCHES)
		cpu->stretches++;
	else
		account_mix_add(cpu, s, cpu->stretch[(cpu->last + 1) % STRETCHES].from_ns);
	s->cgroup_id = cgroup_id;
	s->from_ns = now_ns;
}

/* A wait for a CPU, which is split up from its end to its begin. */
struct account_wait {
	const struct account_cpu *cpu;
	struct thread_queue *queue;
	__u64 from_ns, until_ns;
	__u64 cgroup_id; /* of the thread */
	__u64 unseen_ns; /* its time in mixes that no known cgroup accounts for */
	__u32 slot, pad;
};

/*
 * Charges the time to another cgroup. Returns the kind of runner before the thread (enum
 * queue_behind). A global function: the verifier checks it once.
 */
__noinline __u32 account_queue_charge(__u32 slot, __u64 cgroup_id, __u64 ns)
{
	struct queue_neighbour key = { .cgroup_id = cgroup_id, .slot = slot };
	__u64 *sum_ns = bpf_map_lookup_elem(&queue_neighbours, &key);

	if (sum_ns) {
		__sync_fetch_and_add(sum_ns, ns);
		return QUEUE_OTHERS;
	}
	if (!table_add(&queue_neighbours, TABLE_QUEUE_NEIGHBOURS, slot, &key, &ns))
		return QUEUE_OTHERS;
	/* Another CPU may have inserted it in the meantime. */
	sum_ns = bpf_map_lookup_elem(&queue_neighbours, &key);
	if (!sum_ns)
		return QUEUE_UNLISTED;
	__sync_fetch_and_add(sum_ns, ns);
	return QUEUE_OTHERS;
}

static __noinline int charge_cgroup(const struct account_wait *wait, __u64 cgroup_id, __u64 ns)
{
	__u64 behind = QUEUE_IDLE;

	if (cgroup_id == wait->cgroup_id)
		behind = QUEUE_SIBLINGS;
	else if (cgroup_id)
		behind = account_queue_charge(wait->slot, cgroup_id, ns);
	/* Forces the compiler to use the compared copy, of which the verifier knows the bound. */
	asm volatile("" : "+r"(behind));
	if (behind < QUEUE_BEHIND_)
		wait->queue->behind_ns[behind] += ns;
	return 0;
}

/*
 * Charges the rest of the wait to the interval `back` positions before the last one. Returns 1 if
 * nothing is left.
 */
static long split_wait(__u64 back, struct account_wait *wait)
{
	const struct account_cpu *cpu = wait->cpu;
	const struct account_stretch *s = &cpu->stretch[(cpu->last - (__u32)back) % STRETCHES];
	__u64 begin_ns = s->from_ns > wait->from_ns ? s->from_ns : wait->from_ns;
	__u64 ns = wait->until_ns - begin_ns;

	if (back >= cpu->stretches)
		return 1;
	if ((__s64)ns <= 0)
		return 0;
	charge_cgroup(wait, s->cgroup_id, ns);
	wait->until_ns = begin_ns;
	return begin_ns == wait->from_ns;
}

#define MIX_SHARE_BITS 16

/*
 * As split_wait, with one cgroup of a mix: it gets its share of the part of the mix within the
 * wait. Each mix ends where the next one begins.
 */
static long split_mix(__u64 i, struct account_wait *wait)
{
	const struct account_cpu *cpu = wait->cpu;
	__u32 back = (__u32)i / MIX_CGROUPS, number = i % MIX_CGROUPS;
	const struct account_mix *m = &cpu->mix[(cpu->last_mix - back) % MIXES];
	__u64 begin_ns = m->from_ns > wait->from_ns ? m->from_ns : wait->from_ns;
	__u64 ns = wait->until_ns - begin_ns, whole_ns = wait->until_ns - m->from_ns, part_ns;

	if (back >= cpu->mixes)
		return 1;
	if ((__s64)ns <= 0 || (__s64)whole_ns <= 0)
		return 0;
	part_ns = ((m->ns[number] << MIX_SHARE_BITS) / whole_ns * ns) >> MIX_SHARE_BITS;
	if (part_ns)
		charge_cgroup(wait, m->cgroup_id[number], part_ns);
	wait->unseen_ns -= part_ns;
	if (number < MIX_CGROUPS - 1)
		return 0;
	wait->unseen_ns += ns;
	wait->until_ns = begin_ns;
	return begin_ns == wait->from_ns;
}

/* Splits up a wait of `here_ns` for this CPU. A global function: the verifier checks it once. */
__noinline int account_queue_split(const struct account_cpu *cpu, __u32 slot, __u64 here_ns,
				   struct thread_queue *queue)
{
	struct account_wait wait = { .cpu = cpu, .queue = queue, .slot = slot };

	if (!cpu || !queue)
		return 0;

	wait.until_ns = cpu->since_ns;
	wait.from_ns = wait.until_ns - here_ns;
	wait.cgroup_id = cpu->cgroup_id;
	bpf_loop(STRETCHES, split_wait, &wait, 0);
	if (wait.until_ns != wait.from_ns)
		bpf_loop(MIXES * MIX_CGROUPS, split_mix, &wait, 0);
	wait.unseen_ns += wait.until_ns - wait.from_ns;
	/* If the clock has gone back within a mix, its parts are more than the whole. */
	if ((__s64)wait.unseen_ns > 0)
		queue->behind_ns[QUEUE_UNSEEN] += wait.unseen_ns;
	return 0;
}

/*
 * Counts a wait for a CPU of `queue_ns`, which is over since the thread got this CPU. The scheduler
 * knows only the part of the wait for this CPU; before that the thread waited for another CPU and
 * was migrated.
 */
static __always_inline void account_queue_add(const struct account_cpu *cpu,
					      const struct task_struct *task, __u32 slot,
					      __u64 queue_ns, struct thread_queue *queue)
{
	const struct account_stretch *now = &cpu->stretch[cpu->last % STRETCHES];
	__u32 bucket = time_bucket(queue_ns);
	__u64 here_ns = task->sched_info.last_arrival - cpu->queued_from;

	if (bucket < QUEUE_BUCKETS)
		queue->waits[bucket]++;
	if (queue_ns > queue->longest_ns) {
		queue->longest_ns = queue_ns;
		queue->longest_end_ns = cpu->since_ns;
	}
	here_ns = cpu->queued_from ? clamp_ns(here_ns, queue_ns) : 0;
	if (queue_ns != here_ns)
		queue->behind_ns[QUEUE_MOVED] += queue_ns - here_ns;
	if (!here_ns)
		return;
	/* The CPU has run this cgroup since before the wait began. */
	if (cpu->stretches && cpu->since_ns - now->from_ns >= here_ns &&
	    cpu->since_ns >= now->from_ns)
		queue->behind_ns[QUEUE_SIBLINGS] += here_ns;
	else
		account_queue_split(cpu, slot, here_ns, queue);
}

#endif
