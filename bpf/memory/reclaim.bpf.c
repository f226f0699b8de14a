// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * reclaim.bpf.c: measures exactly, by cgroup, how long threads spend in direct reclaim, and how
 * long they are throttled because too many pages are dirty. The programs are attached for the
 * duration of a session. They count all cgroups, because a session also reports the other cgroups
 * that were short of memory. No stack is taken here: reclaim runs with interrupts on, so a tick
 * could overwrite a stack that is half taken. Thread snapshots find the threads in reclaim
 * (LOOK_MEMORY).
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel/kernel_memory.h"
#include "bpf/maps/maps.h"
#include "bpf/maps/table.h"
#include "bpf/maps/task_keys.h"
#include "bpf/maps/time_bucket.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_lookup.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * Which argument of balance_dirty_pages is the pause: the tracepoint had 12 arguments, and has 8
 * since 6.16. The loader sets it; for any other value no pause is counted.
 */
const volatile __u32 dirty_pause_at = 0;

#define PAUSE_OF_8  6
#define PAUSE_OF_12 10

/* A throttled thread goes to sleep within this time; a later sleep has another cause. */
#define SOON_NS 1000000

/* Both maps are empty and take no memory outside sessions. The consumer empties them. */
MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, reclaim_open, struct reclaim_open_key, struct reclaim_open,
	  RECLAIM_OPEN_MAX);
MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, reclaim_sums, struct reclaim_key, struct reclaim_sums,
	  RECLAIM_SUMS_MAX);

MAP(PERCPU_ARRAY, reclaim_losses, __u32, struct slot_reclaim, SLOTS_DEFAULT + 1);

static const struct reclaim_sums no_sums;

enum loss { LOSS_UNTRACKED, LOSS_UNLISTED, LOSS_AWAKE };

/*
 * Counts a loss in the slot's watch and in the watches around it. A loss of no watch is counted in
 * the element that all sessions read (LOSSES_OF). `error` is the error of the table.
 */
static __noinline int count_lost(__u32 index, __u32 loss, int error)
{
	bool no_memory = loss != LOSS_AWAKE && table_was_short(error);

	for (int i = 0; i < WATCHES_NESTED; i++) {
		__u32 at = LOSSES_OF(index);
		struct slot_reclaim *losses = bpf_map_lookup_elem(&reclaim_losses, &at);
		const struct slot *slot;

		if (!losses || (index == NO_SLOT && loss == LOSS_AWAKE))
			return 0;
		losses->untracked += loss == LOSS_UNTRACKED;
		losses->unlisted += loss == LOSS_UNLISTED;
		losses->awake += loss == LOSS_AWAKE;
		losses->no_memory += no_memory;
		slot = bpf_map_lookup_elem(&slots, &index);
		if (!slot || !watch_lookup_outer(slot, &index) || index == NO_SLOT)
			return 0;
	}
	return 0;
}

/*
 * Sets the cgroup of the reclaim event. Returns false for a kernel thread, which reclaims for no
 * cgroup.
 */
static __always_inline bool find_asker(struct task_struct *task, struct reclaim_open *ret_open)
{
	if (task->flags & PF_KTHREAD)
		return false;
	if (!scope_allows_task(task))
		return true;
	ret_open->cgroup_id = task_keys_read_cgroup(task);
	if (!watch_lookup(ret_open->cgroup_id, &ret_open->slot))
		ret_open->slot = NO_SLOT;
	return true;
}

static __always_inline int begin_stretch(enum reclaim_kind kind, __u32 device)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct reclaim_open_key key = { .tid = task->pid, .kind = kind };
	struct reclaim_open open = { .since_ns = bpf_ktime_get_ns(),
				     .slot = NO_SLOT,
				     .device = device };
	int error;

	if (watch_lookup_is_off(open.since_ns) || !find_asker(task, &open))
		return 0;
	/*
	 * This replaces an older event of the thread, of which the end was missed: a thread is not
	 * in two at a time.
	 */
	error = bpf_map_update_elem(&reclaim_open, &key, &open, BPF_ANY);
	if (error)
		count_lost(open.slot, LOSS_UNTRACKED, error);
	return 0;
}

/* Returns the element for this kind of reclaim event, as table_get does. */
static __always_inline struct reclaim_sums *find_sums(const struct reclaim_open *open, __u32 kind,
						      int *ret_error)
{
	struct reclaim_key key = { .cgroup_id = open->cgroup_id,
				   .slot = open->slot,
				   .device = open->device,
				   .kind = kind };

	return table_get(&reclaim_sums, TABLE_RECLAIM_SUMS, open->slot, &key, &no_sums, ret_error);
}

/* Adds a completed reclaim event. */
static __noinline int add_stretch(const struct reclaim_open *open, __u32 kind, __u64 now_ns,
				  __u64 pages)
{
	int error;
	struct reclaim_sums *sums = find_sums(open, kind, &error);
	__u64 ns = now_ns - open->since_ns;

	if (!sums)
		return count_lost(open->slot, LOSS_UNLISTED, error);
	__sync_fetch_and_add(&sums->count, 1);
	__sync_fetch_and_add(&sums->time_ns, ns);
	__sync_fetch_and_add(&sums->pages, pages);
	time_bucket_count(sums->steps, QUEUE_BUCKETS, ns);
	/* If two CPUs do this at once, the later one wins, and its time is nearly as long. */
	if (ns > READ_WORD(sums->longest_ns))
		sums->longest_ns = ns;
	return 0;
}

/*
 * Counts an end of which the begin was before the programs were attached, or was dropped because
 * the table had no space.
 */
static __noinline int add_orphan(struct task_struct *task, __u32 kind, __u64 now_ns)
{
	struct reclaim_open open = { .slot = NO_SLOT };
	struct reclaim_sums *sums;
	int error;

	if (!find_asker(task, &open))
		return 0;
	sums = find_sums(&open, kind, &error);
	if (!sums)
		return count_lost(open.slot, LOSS_UNLISTED, error);
	__sync_fetch_and_add(&sums->orphans, 1);
	__sync_fetch_and_add(&sums->orphan_ends_ns, now_ns);
	return 0;
}

static __always_inline int end_stretch(enum reclaim_kind kind, __u64 pages)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct reclaim_open_key key = { .tid = task->pid, .kind = kind };
	__u64 now_ns = bpf_ktime_get_ns();
	const struct reclaim_open *known;
	struct reclaim_open open;

	if (watch_lookup_is_off(now_ns))
		return 0;
	known = bpf_map_lookup_elem(&reclaim_open, &key);
	if (!known)
		return add_orphan(task, kind, now_ns);
	open = *known;
	bpf_map_delete_elem(&reclaim_open, &key);
	return add_stretch(&open, kind, now_ns, pages);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(reclaim_begin)
{
	return begin_stretch(RECLAIM_DIRECT, 0);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(reclaim_end, unsigned long pages)
{
	return end_stretch(RECLAIM_DIRECT, pages);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(reclaim_limit_begin)
{
	return begin_stretch(RECLAIM_LIMIT, 0);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(reclaim_limit_end, unsigned long pages)
{
	return end_stretch(RECLAIM_LIMIT, pages);
}

SEC("tp_btf/mm_compaction_begin")
int BPF_PROG(compaction_begin)
{
	return begin_stretch(RECLAIM_COMPACTION, 0);
}

SEC("tp_btf/mm_compaction_end")
int BPF_PROG(compaction_end)
{
	return end_stretch(RECLAIM_COMPACTION, 0);
}

/* Returns the number of the disk that is written to; 0: none. */
static __always_inline __u32 device_of(const struct bdi_writeback *wb)
{
	__u32 number = BPF_CORE_READ(wb, bdi, owner, devt);

	return number;
}

/*
 * Records that the current thread must wait before it may continue to write. There is no tracepoint
 * after the wait: it ends when the thread gets a CPU again. A pause of 0 is reported too, and is no
 * wait.
 */
SEC("tp_btf/balance_dirty_pages")
int dirty_pause(__u64 *ctx)
{
	const struct bdi_writeback *wb = (const struct bdi_writeback *)ctx[0];
	long pause = 0;

	/*
	 * Otherwise the compiler merges the two loads into one from a variable address, which the
	 * verifier refuses.
	 */
	if (dirty_pause_at == PAUSE_OF_8)
		asm volatile("%0 = *(u64 *)(%1 + 48)" : "=r"(pause) : "r"(ctx));
	else if (dirty_pause_at == PAUSE_OF_12)
		asm volatile("%0 = *(u64 *)(%1 + 80)" : "=r"(pause) : "r"(ctx));
	return pause > 0 ? begin_stretch(RECLAIM_THROTTLE, device_of(wb)) : 0;
}

/* Handles a thread that leaves its CPU: either for the reported pause, or there was no pause. */
static __noinline int leave_cpu(struct task_struct *task, __u64 now_ns)
{
	struct reclaim_open_key key = { .tid = task->pid, .kind = RECLAIM_THROTTLE };
	struct reclaim_open *open = bpf_map_lookup_elem(&reclaim_open, &key);

	if (!open || open->asleep)
		return 0;
	if (now_ns - open->since_ns < SOON_NS) {
		open->asleep = 1;
		return 0;
	}
	count_lost(open->slot, LOSS_AWAKE, 0);
	bpf_map_delete_elem(&reclaim_open, &key);
	return 0;
}

/* Handles a thread that gets a CPU: the pause is over, if the thread slept for one. */
static __noinline int come_to_cpu(struct task_struct *task, __u64 now_ns)
{
	struct reclaim_open_key key = { .tid = task->pid, .kind = RECLAIM_THROTTLE };
	const struct reclaim_open *known = bpf_map_lookup_elem(&reclaim_open, &key);
	struct reclaim_open open;

	if (!known || !known->asleep)
		return 0;
	open = *known;
	bpf_map_delete_elem(&reclaim_open, &key);
	return add_stretch(&open, RECLAIM_THROTTLE, now_ns, 0);
}

/*
 * A throttled thread sleeps in an I/O wait, and in_iowait stays set until the thread runs again. So
 * all other switches cost two loads.
 */
SEC("tp_btf/sched_switch")
int BPF_PROG(dirty_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	bool leaves = !preempt && state && BPF_CORE_READ_BITFIELD(prev, in_iowait);
	bool comes = BPF_CORE_READ_BITFIELD(next, in_iowait);
	__u64 now_ns;

	if (!leaves && !comes)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (leaves)
		leave_cpu(prev, now_ns);
	if (comes)
		come_to_cpu(next, now_ns);
	return 0;
}
