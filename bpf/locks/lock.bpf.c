// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lock.bpf.c: records the lock waits of the threads of watched cgroups by lock, the wakers of the
 * long ones, and each long wait of any kind. The program is attached for the duration of a session,
 * next to the program of the time accounts (account.bpf.c), which record the begin and the kind of
 * each wait. It runs at every wake-up on the host, in the context of the waker. Each CPU caches for
 * one jiffy whether a thread's cgroup has a watch.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/locks/lock_herd.h"
#include "bpf/locks/lock_key.h"
#include "bpf/locks/lock_memory.h"
#include "bpf/locks/lock_stack.h"
#include "bpf/locks/long_wait.h"
#include "bpf/maps/interrupt.h"
#include "bpf/maps/maps.h"
#include "bpf/maps/table.h"
#include "bpf/maps/time_bucket.h"
#include "bpf/time/account_find.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_answers.h"
#include "bpf/watch/watch_captured.h"
#include "bpf/watch/watch_lookup.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Empty, without memory, outside sessions, as `accounts`. The consumer empties it. */
MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, locks, struct lock_key, struct lock_sums, LOCKS_DEFAULT);

MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, lock_wakers, struct lock_waker_key, struct lock_waker,
	  LOCK_WAKERS);

static const struct lock_sums no_waits;
static const struct lock_waker no_waker;

#define LONGEST_TRIES 4

/* A wait that ends now. */
struct lock_wait {
	struct lock_key key;
	__u64 ns, now_ns;
	__u32 tid;
	__u32 slot;
	__u64 stack_ns; /* weight of the waker's stack; 0: no stack is taken */
};

/*
 * Counts a wait, or its waker, that was lost because its table had no space, in the slot's watch
 * and in the watches around it. A global function: the verifier checks it once.
 */
__noinline int lock_count_lost(__u32 index, __u32 waker, int error)
{
	struct slot_locks *losses;
	const struct slot *slot;

	losses_for_each (losses, lock_losses, slot, index) {
		if (waker)
			losses->wakers++;
		else
			losses->waits++;
		if (!waker && table_was_short(error))
			losses->no_memory++;
	}
	return 0;
}

/*
 * Returns whether the thread has left its CPU and still waits. Until it has left, its account
 * covers an earlier time; such a wait ends as it begins. A thread that is awake gets no second
 * wake-up: the kernel checks the state under a lock before it reports one.
 */
static __always_inline bool is_asleep(struct task_struct *task)
{
	const struct task_struct___lock *fields = (const void *)task;

	return !BPF_CORE_READ(fields, on_cpu);
}

/* Records the wait if it is the longest so far. Two CPUs may do so at once: each tries again. */
static __always_inline void note_longest(struct lock_sums *sums, struct task_struct *task,
					 const struct lock_wait *wait)
{
	for (int i = 0; i < LONGEST_TRIES; i++) {
		__u64 before = READ_WORD(sums->longest_ns);

		if (wait->ns <= before)
			return;
		if (__sync_val_compare_and_swap(&sums->longest_ns, before, wait->ns) != before)
			continue;
		sums->longest_tid = wait->tid;
		BPF_CORE_READ_INTO(&sums->longest_comm, task, comm);
		return;
	}
}

/* Marks the thread as one that waited for the lock. */
static __always_inline void note_thread(struct lock_sums *sums, __u32 tid)
{
	__u64 *word = &sums->threads[tid / 64 % LOCK_THREAD_WORDS], bit = 1ull << tid % 64;

	if (!(READ_WORD(*word) & bit))
		__sync_fetch_and_or(word, bit);
}

/*
 * Returns the element of the lock, as table_get does. A new element gets the process's start and
 * name, and the memory that holds the lock.
 */
static __noinline struct lock_sums *find_sums(struct task_struct *task, const struct lock_key *key,
					      int *ret_error)
{
	struct lock_sums *sums =
		table_get(&locks, TABLE_LOCKS, key->slot, key, &no_waits, ret_error);

	if (!sums || sums->start_ns)
		return sums;
	sums->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	BPF_CORE_READ_INTO(&sums->comm, task, group_leader, comm);
	lock_memory_find(&sums->memory, task, key->address, lock_key_stack(task));
	return sums;
}

/* Adds the wait to the sums of its lock and returns them. NULL without space (table_get). */
static __always_inline struct lock_sums *add_wait(struct task_struct *task,
						  const struct lock_wait *wait, int *ret_error)
{
	struct lock_sums *sums = find_sums(task, &wait->key, ret_error);

	if (!sums)
		return 0;
	__sync_fetch_and_add(&sums->waits, 1);
	__sync_fetch_and_add(&sums->total_ns, wait->ns);
	time_bucket_count(sums->buckets, LOCK_BUCKETS, wait->ns);
	note_thread(sums, wait->tid);
	note_longest(sums, task, wait);
	return sums;
}

static __always_inline __u32 waker_kind(void *ctx, struct task_struct *task)
{
	if (long_wait_has_signal(task))
		return LOCK_WAKER_SIGNAL;
	return interrupt_is(ctx) ? LOCK_WAKER_INTERRUPT : LOCK_WAKER_THREAD;
}

/*
 * Adds to the share of a thread, or of interrupts and signals (reign NULL), in the long waits for a
 * lock. A global function: the verifier checks it once.
 */
__noinline int lock_charge_thread(const struct lock_waker_key *key, __u32 slot, __u64 waits,
				  __u64 held_ns, const struct lock_reign *reign)
{
	struct lock_waker_key own; /* 6.1 accepts a map key only from this function's own stack */
	struct lock_waker *waker;
	int error;

	if (!key)
		return 0;
	own = *key;
	waker = table_get(&lock_wakers, TABLE_LOCK_WAKERS, slot, &own, &no_waker, &error);
	if (!waker)
		return lock_count_lost(slot, true, error);
	if (reign)
		__sync_fetch_and_add(&waker->pending_ns, held_ns);
	if (reign && !waker->tgid) {
		waker->tgid = reign->tgid;
		__builtin_memcpy(waker->comm, reign->comm, sizeof(waker->comm));
	}
	__sync_fetch_and_add(&waker->waits, waits);
	__sync_fetch_and_add(&waker->held_ns, held_ns);
	return 0;
}

/*
 * Charges the time of a wait that ends now to the threads that held the lock in that time, the last
 * one first. The oldest known holder is charged with all the time before it.
 */
static __always_inline void charge_reigns(const struct lock_wait *wait,
					  const struct lock_sums *sums, struct lock_waker_key *key)
{
	__u64 number = READ_WORD(sums->next_reign), end_ns = wait->now_ns;
	__u64 begin_ns = end_ns - wait->ns;

	for (int i = 1; i <= LOCK_REIGNS && end_ns > begin_ns; i++) {
		const struct lock_reign *reign = &sums->reigns[(number - i) % LOCK_REIGNS];
		__u64 since_ns = READ_WORD(reign->since_ns);

		if (number < i)
			break;
		key->tid = READ_WORD(reign->tid);
		if (since_ns < begin_ns || i == LOCK_REIGNS || number == i)
			since_ns = begin_ns;
		if (since_ns < end_ns) {
			lock_charge_thread(key, wait->slot, i == 1, end_ns - since_ns, reign);
			end_ns = since_ns;
		}
	}
}

/*
 * Records that the running thread wakes a waiter for the lock. Two CPUs may do so at once: then one
 * of the wakers is lost and is not charged with the time between the two. A thread outside of the
 * loader's --scope is recorded without name and numbers. Returns whether the thread has just woken
 * another one for the lock in the same system call.
 */
static __always_inline bool note_reign(struct lock_sums *sums, __u64 now_ns)
{
	struct task_struct *current = bpf_get_current_task_btf();
	bool named = scope_allows_task(current);
	__u32 tid = named ? current->pid : 0;
	__u64 number = READ_WORD(sums->next_reign), since_ns = READ_WORD(sums->woken_ns);
	struct lock_reign *reign = &sums->reigns[(number - 1) % LOCK_REIGNS];
	bool slept = READ_WORD(sums->waker_slept) != current->nvcsw;

	sums->woken_ns = now_ns;
	sums->waker_slept = current->nvcsw;
	if (number && READ_WORD(reign->tid) == tid)
		return !slept && now_ns - since_ns <= LOCK_HERD_NS && !lock_herd_wakes_one(current);
	reign = &sums->reigns[number % LOCK_REIGNS];
	reign->since_ns = since_ns;
	reign->tid = tid;
	reign->tgid = named ? current->tgid : 0;
	if (named)
		bpf_get_current_comm(reign->comm, sizeof(reign->comm));
	else
		reign->comm[0] = 0;
	sums->next_reign = number + 1;
	return false;
}

/*
 * Sets the weight of the running thread's stack. A stack is taken at most once in
 * LOCK_STACK_EVERY_NS for each lock and thread, and only of threads that have an account: other
 * threads have no unwind table.
 */
static __always_inline void choose_stack(struct lock_wait *wait, struct lock_waker_key *key)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct account_key own = { .tid = current->pid };
	struct lock_waker *waker;

	key->tid = own.tid;
	waker = bpf_map_lookup_elem(&lock_wakers, key);
	if (!waker || wait->now_ns - READ_WORD(waker->stacked_ns) < LOCK_STACK_EVERY_NS ||
	    !account_find(&own) || !scope_allows_task(current))
		return;
	waker->stacked_ns = wait->now_ns;
	wait->stack_ns = READ_WORD(waker->pending_ns);
	__sync_fetch_and_add(&waker->pending_ns, -wait->stack_ns);
}

/* Records the waker of a wait: the running thread, an interrupt or a signal. */
static __noinline int note_waker(void *ctx, struct task_struct *task, struct thread_times *t,
				 struct lock_sums *sums, struct lock_wait *wait)
{
	struct lock_waker_key key = { .lock = wait->key, .kind = waker_kind(ctx, task) };
	bool is_thread = key.kind == LOCK_WAKER_THREAD, together;

	together = is_thread && note_reign(sums, wait->now_ns);
	lock_herd_note(t, task, sums, &wait->key, wait->now_ns, together);
	if (wait->ns < LOCK_LONG_NS)
		return 0;
	if (!is_thread)
		return lock_charge_thread(&key, wait->slot, 1, wait->ns, 0);
	charge_reigns(wait, sums, &key);
	choose_stack(wait, &key);
	return 0;
}

/*
 * Returns whether the thread is still of the watch of its account. A thread that moved to another
 * cgroup no longer has an account; the old one covers the time before the move.
 */
static __always_inline bool is_current(struct task_struct *task, __u32 slot)
{
	__u32 index;

	return watch_lookup(task_keys_read_cgroup(task), &index) && index == slot;
}

/*
 * Returns whether a session records the wait of `task` that ends now. `a` is the thread's account,
 * in slot `slot`.
 */
static __always_inline bool takes_wait(struct task_struct *task, const struct time_account *a,
				       __u32 slot, __u64 now_ns)
{
	const struct control *c = control_get();

	return !(a->flags & ACCOUNT_ENDED) && is_asleep(task) && c &&
	       !watch_lookup_is_stale(c, now_ns) && watch_is_captured(slot) &&
	       scope_allows_task(task);
}

/*
 * Records a long wait that is not a lock wait. The consumer may have written the account, so `kind`
 * is checked.
 */
static __noinline int end_other(void *ctx, struct task_struct *task, const struct time_account *a,
				__u32 slot, __u64 now_ns)
{
	struct long_wait wait = { .begin_ns = READ_WORD(a->since_ns),
				  .end_ns = now_ns,
				  .slot = slot };
	__u32 part = READ_WORD(a->kind);

	wait.part = part < ACCOUNT_PARTS_ ? part : ACCOUNT_OTHER;
	return takes_wait(task, a, slot, now_ns) ? long_wait_note(ctx, task, &wait) : 0;
}

static __noinline int note_long(void *ctx, struct task_struct *task, const struct lock_wait *wait)
{
	struct long_wait note = { .begin_ns = wait->now_ns - wait->ns,
				  .end_ns = wait->now_ns,
				  .address = wait->key.address,
				  .slot = wait->slot,
				  .part = ACCOUNT_LOCK };

	return long_wait_note(ctx, task, &note);
}

/* Handles the end of a lock wait of `task`, which is in the watch of its account in `t`. */
static __noinline int end_wait(void *ctx, struct task_struct *task, struct thread_times *t,
			       struct lock_wait *wait)
{
	const struct time_account *a = &t->account;
	__u64 now_ns = bpf_ktime_get_ns(), since_ns = READ_WORD(a->since_ns);
	struct lock_sums *sums;
	int error;

	if (!takes_wait(task, a, wait->slot, now_ns))
		return 0;
	wait->ns = now_ns > since_ns ? now_ns - since_ns : 0;
	lock_key_find(&wait->key, task, wait->slot);
	wait->now_ns = now_ns;
	if (wait->ns >= LONG_WAIT_NS)
		note_long(ctx, task, wait);
	sums = add_wait(task, wait, &error);
	if (!sums)
		return lock_count_lost(wait->slot, false, error);
	return note_waker(ctx, task, t, sums, wait);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(lock_waking, struct task_struct *task)
{
	struct watch_answers *answers = map_single(&watch_answers);
	struct account_key key = { .tid = task->pid };
	struct thread_times *t;
	struct lock_wait wait = {};
	__u64 now_ns;

	/*
	 * A thread that wakes itself does not sleep. Only in that case are interrupts enabled here.
	 */
	if (!answers || task == bpf_get_current_task_btf() ||
	    !watch_answers_find(answers, task_keys_cgroup(task), &wait.slot))
		return 0;
	t = account_find_by(&key, &wait.tid);
	if (!t || READ_WORD(t->account.kind) <= ACCOUNT_QUEUE ||
	    READ_WORD(t->account.slot) != wait.slot)
		return 0;
	if (READ_WORD(t->account.kind) != ACCOUNT_LOCK) {
		now_ns = long_wait_now(answers, READ_WORD(t->account.since_ns));
		return now_ns ? end_other(ctx, task, &t->account, wait.slot, now_ns) : 0;
	}
	wait.tid = task->pid;
	end_wait(ctx, task, t, &wait);
	if (wait.stack_ns)
		lock_stack_take(ctx, &wait.key, wait.stack_ns, wait.now_ns);
	return 0;
}

/*
 * Lists the threads that wait for a lock now. At the begin of a session these waits began before
 * it, at its end they are still open.
 */
SEC("iter/task")
int lock_waits(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	const struct task_struct___lock *fields = (const void *)task;
	struct lock_record record = {};
	struct account_key key = {};
	const struct thread_times *t;
	const struct time_account *a;

	if (!task)
		return 0;
	key.tid = task->pid;
	t = account_find(&key);
	if (!t)
		return 0;
	a = &t->account;
	if (READ_WORD(a->kind) != ACCOUNT_LOCK || a->flags & ACCOUNT_ENDED)
		return 0;
	record.since_ns = READ_WORD(a->since_ns);
	if (!is_current(task, READ_WORD(a->slot)) || !is_asleep(task) ||
	    !BPF_CORE_READ(fields, __state) || BPF_CORE_READ(fields, exit_state) ||
	    !scope_allows_task(task))
		return 0;
	lock_key_find(&record.lock, task, READ_WORD(a->slot));
	record.now_ns = bpf_ktime_get_ns();
	record.start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	record.tid = key.tid;
	BPF_CORE_READ_INTO(&record.comm, task, group_leader, comm);
	BPF_CORE_READ_INTO(&record.thread_comm, task, comm);
	lock_memory_find(&record.memory, task, record.lock.address, lock_key_stack(task));
	/* The thread has run in the meantime: the arguments may belong to another system call. */
	if (READ_WORD(a->since_ns) != record.since_ns || !is_asleep(task))
		return 0;
	bpf_seq_write(seq, &record, sizeof(record));
	return 0;
}
