/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * account_queue.h: how threads waited for a CPU, and which cgroups had it in that time. There is no
 * hook where a wait begins. But when a thread comes to a CPU the scheduler knows since when it
 * waited for that one, and each CPU remembers which cgroups it had last: so the wait is split up
 * when it is over. Cgroups that take turns of some microseconds would fill that memory within one
 * wait: beyond its room it keeps the sums of each millisecond.
 */
#ifndef TROCAR_BPF_TIME_ACCOUNT_QUEUE_H
#define TROCAR_BPF_TIME_ACCOUNT_QUEUE_H

#include "bpf/maps/table.h"
#include "bpf/maps/time_bucket.h"
#include "bpf/time/account.h"

/* Not preallocated, as `accounts`. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, QUEUE_NEIGHBOURS_MAX);
	__type(key, struct queue_neighbour);
	__type(value, __u64);
} queue_neighbours SEC(".maps");

/* Adds a stretch that lies before all that are known. Of a fifth cgroup in a mix nothing is kept.
 */
static __always_inline void account_mix_add(struct account_cpu *cpu,
					    const struct account_stretch *s, __u64 until_ns)
{
	struct account_mix *m = &cpu->mix[cpu->last_mix % MIXES];
	__u64 ns = until_ns - s->from_ns;

	/* The clock is followed, and may go back a little (account_clock.h). */
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
 * Notes that the CPU goes to a thread of another cgroup; 0: it goes idle. As long as it stays with
 * one nothing is written, and the time is not read.
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

/* A wait for a CPU, as it is split up from its end to its begin. */
struct account_wait {
	const struct account_cpu *cpu;
	struct thread_queue *queue;
	__u64 from_ns, until_ns;
	__u64 cgroup_id; /* of the thread */
	__u64 unseen_ns; /* of it in mixes, less their known part */
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
	/* Another CPU may have inserted it meanwhile. */
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
	/* The verifier sees the bound of the copy that is compared. */
	asm volatile("" : "+r"(behind));
	if (behind < QUEUE_BEHIND_)
		wait->queue->behind_ns[behind] += ns;
	return 0;
}

/* Charges the rest of the wait to the stretch that far back. Returns 1 when nothing is left. */
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
 * The same with a cgroup of the mix so far back: it gets its share of the part within the wait.
 * Each mix ends where the one behind it begins.
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

/* Splits up a wait of `here_ns` for this CPU. A global function, as above. */
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
	/* Where the clock has gone back in a mix, its parts are more than the whole. */
	if ((__s64)wait.unseen_ns > 0)
		queue->behind_ns[QUEUE_UNSEEN] += wait.unseen_ns;
	return 0;
}

/*
 * Counts a wait for a CPU of `queue_ns` that is over since the thread came to this CPU. Of it the
 * scheduler knows the part for this CPU; before that the thread waited on another one, from which
 * it was moved.
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
	/* The CPU was with this very cgroup when the wait began, and has been since. */
	if (cpu->stretches && cpu->since_ns - now->from_ns >= here_ns &&
	    cpu->since_ns >= now->from_ns)
		queue->behind_ns[QUEUE_SIBLINGS] += here_ns;
	else
		account_queue_split(cpu, slot, here_ns, queue);
}

#endif
