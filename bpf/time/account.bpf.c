// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * account.bpf.c: time accounts of the threads of watched cgroups: how long each thread ran, waited
 * for a CPU, and waited for each kind of object. One program is attached for the duration of a
 * session and runs at every context switch on the host: its first test is one hash lookup. One
 * iterator reads the accounts, and adds the threads that have slept since before the session.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/maps/table.h"
#include "bpf/time/account.h"
#include "bpf/time/account_calls.h"
#include "bpf/time/account_clock.h"
#include "bpf/time/account_kind.h"
#include "bpf/time/account_queue.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_answers.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Difference of CLOCK_MONOTONIC and the scheduler's clock, as of the last switches. */
static __s64 clock_offset_ns;

#define OFFSET_DRIFT_NS 50000

/* Maximum attempts to copy an account without a concurrent write. */
#define READ_TRIES 8

/*
 * Records the difference of the clocks: both have the time at which the thread got its CPU. It
 * stores seldom, because all CPUs read the word.
 */
static __always_inline void note_offset(const struct task_struct *task, __u64 since_ns)
{
	__s64 offset_ns = (__s64)(since_ns - task->sched_info.last_arrival);

	if ((__u64)(offset_ns - clock_offset_ns + OFFSET_DRIFT_NS) > 2 * OFFSET_DRIFT_NS)
		clock_offset_ns = offset_ns;
}

/*
 * Returns whether a session runs on the watch of the slot, or on one around it. `reads`: called by
 * the iterator, which uses slot.session instead of slot.state.
 */
static __always_inline bool is_captured(__u32 index, bool reads)
{
	const struct slot *slot;

	watch_for_each (slot, index)
		if (reads ? READ_WORD(slot->session) != 0 : READ_WORD(slot->state) == SLOT_CAPTURE)
			return true;
	return false;
}

/*
 * Counts a thread without an account that left its CPU. `ended`: the thread ends and never had an
 * account. `error` is the error of the table. A global function: the verifier checks it once.
 */
__noinline int account_count_lost(__u32 index, __u32 ended, int error)
{
	struct slot_accounts *losses;
	const struct slot *slot;

	losses_for_each (losses, account_losses, slot, index) {
		losses->unqueued++;
		losses->ended += ended;
		losses->no_memory += table_was_short(error);
		losses->ended_no_memory += ended && table_was_short(error);
	}
	return 0;
}

/*
 * Returns the account of `task` in this watch, and creates it if it is missing. NULL if the task
 * gets none, or if the table has no space; *ret_error is then the error of the table.
 */
static __always_inline struct thread_times *find_account(struct task_struct *task,
							 const struct account_key *key, __u32 index,
							 __u64 since_ns, bool reads, int *ret_error)
{
	struct thread_times *t = account_find(key);

	if (t && t->account.slot == index && !(t->account.flags & ACCOUNT_ENDED))
		return t;
	if (t)
		account_retire(key, t, t->account.flags & ACCOUNT_ENDED ? 0 : ACCOUNT_MOVED);
	if (account_leaves_out(task, index))
		return 0;
	return account_enter(task, index, since_ns, reads, ret_error);
}

/*
 * Adds the time until now to the account of the current thread, which leaves the CPU, and sets the
 * kind of its next wait. The thread got this CPU at cpu->since_ns; 0: before the program was
 * attached. A global function: the verifier checks it once, and not for each place of an account.
 */
__noinline int account_close(struct thread_times *t, const struct account_cpu *cpu, __u64 now_ns,
			     __u32 state)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct control *c = control_get();
	struct account_split split;
	struct time_account *a;
	__u64 since_ns, delay_ns;

	if (!t || !cpu)
		return 0;
	a = &t->account;
	since_ns = cpu->since_ns;
	delay_ns = task->sched_info.run_delay;
	account_split_time(a, now_ns, since_ns ? now_ns - since_ns : 0, delay_ns - a->waited_ns,
			   &split);
	/* A thread that was first seen on a CPU waited for it before its account began. */
	if (since_ns && a->first_ns < since_ns)
		account_queue_add(cpu, task, a->slot, split.queue_ns, &t->queue);
	else
		t->queue.behind_ns[QUEUE_UNSEEN] += split.queue_ns;
	account_add(a, &split);
	if (c && READ_WORD(c->calls) && a->kind > ACCOUNT_QUEUE && split.rest_ns)
		account_calls_add(a, split.rest_ns);
	a->waited_ns = delay_ns;
	a->kind = state ? account_kind_of(task, state, &a->call) : ACCOUNT_QUEUE;
	return 0;
}

/* Handles a thread that leaves the CPU. With TASK_DEAD it does so for the last time. */
static __always_inline int leave_cpu(struct task_struct *task, __u32 index,
				     const struct account_cpu *cpu, __u64 now_ns,
				     unsigned int state)
{
	struct account_key key = { .tid = task->pid };
	const struct control *c = control_get();
	__u64 enter_ns = now_ns, since_ns = cpu->since_ns;
	bool dead = state & TASK_DEAD;
	struct thread_times *t;
	int error = 0;

	if (!c || watch_lookup_is_stale(c, now_ns))
		return 0;
	if (since_ns)
		note_offset(task, since_ns);
	if (task->sched_info.pcount <= 1)
		enter_ns = 0;
	else if (since_ns)
		enter_ns = since_ns;
	t = find_account(task, &key, index, enter_ns, false, &error);
	if (!t) {
		if (!account_leaves_out(task, index))
			account_count_lost(index, dead, error);
		return 0;
	}
	/* Counted as in the scheduler (bpf/cpu/switch.bpf.c). */
	if (state)
		t->account.switches.voluntary++;
	else
		t->account.switches.involuntary++;
	account_close(t, cpu, now_ns, dead ? 0 : state);
	if (!dead)
		return 0;
	t->account.flags |= ACCOUNT_ENDED;
	__builtin_memcpy(t->account.comm, task->comm, COMM_BYTES);
	return 0;
}

/*
 * Records the cgroup and the watch of the task that gets the CPU. Tasks of one cgroup mostly share
 * their css_set: if the previous task had the same one in this jiffy, nothing is looked up. The
 * idle task has no watch, although its root cgroup is watched on hybrid hosts.
 */
static __always_inline void note_cgroup(struct account_cpu *cpu, struct watch_answers *answers,
					struct task_struct *task)
{
	struct task_struct *plain = kernel_cast_task(task);
	__u64 set = task->pid ? (__u64)plain->cgroups : 0, jiffy = bpf_jiffies64();
	__u32 index;

	if (cpu->set == set && cpu->set_jiffy == jiffy)
		return;
	cpu->set = set;
	cpu->set_jiffy = jiffy;
	cpu->cgroup_id = set ? task_keys_cgroup(plain) : 0;
	cpu->slot = set && watch_answers_find(answers, cpu->cgroup_id, &index) ? index + 1 : 0;
}

/* Records the next thread of the CPU. `now_ns` 0: the clock has not been read yet. */
static __always_inline void come_to_cpu(struct account_cpu *cpu, struct watch_answers *answers,
					struct task_struct *prev, struct task_struct *task,
					__u64 now_ns)
{
	__u64 had_id = cpu->cgroup_id;

	note_cgroup(cpu, answers, task);
	if (!cpu->stretches || cpu->cgroup_id != had_id) {
		if (!now_ns)
			now_ns = account_clock_now(cpu, prev);
		account_queue_note(cpu, cpu->cgroup_id, now_ns);
	}
	cpu->task = (__u64)task;
	cpu->since_ns = 0;
	if (!cpu->slot)
		return;
	cpu->since_ns = now_ns ? now_ns : account_clock_now(cpu, prev);
	cpu->queued_from = task->sched_info.last_queued;
}

/*
 * Starts again, because the program missed switches, or because a session begins or ends. Looks up
 * the watch of the leaving thread again.
 */
static __noinline int meet_cpu(struct account_cpu *cpu, struct watch_answers *answers,
			       struct task_struct *prev)
{
	__u32 index;

	if (cpu->task != (__u64)prev) {
		cpu->since_ns = 0;
		cpu->stretches = 0;
		cpu->mixes = 0;
	}
	watch_answers_forget(answers);
	cpu->cgroup_id = prev->pid ? task_keys_cgroup(kernel_cast_task(prev)) : 0;
	cpu->slot = cpu->cgroup_id && watch_lookup(cpu->cgroup_id, &index) ? index + 1 : 0;
	cpu->set = 0;
	cpu->set_jiffy = 0;
	cpu->reading = account_readings;
	return 0;
}

/*
 * `state` is the copy that the scheduler made. A preempted task was runnable, whatever state it had
 * already set (bpf/cpu/switch.bpf.c). The watch of a task is looked up when it gets the CPU; each
 * CPU keeps the last answers (watch_answers.h).
 */
SEC("tp_btf/sched_switch")
int BPF_PROG(account_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	struct watch_answers *answers = map_single(&watch_answers);
	struct account_cpu *cpu = map_single(&account_cpus);
	__u64 now_ns = 0;

	if (!cpu || !answers || !bpf_core_field_exists(prev->sched_info.run_delay))
		return 0;
	if (cpu->task != (__u64)prev || cpu->reading != account_readings)
		meet_cpu(cpu, answers, prev);
	if (cpu->slot && is_captured(cpu->slot - 1, false) && scope_allows_task(prev)) {
		now_ns = account_clock_now(cpu, prev);
		leave_cpu(prev, cpu->slot - 1, cpu, now_ns, preempt ? 0 : state);
	}
	come_to_cpu(cpu, answers, prev, next, now_ns);
	return 0;
}

/*
 * Copies an account that another CPU may be writing: the sum of its times shows whether the copy is
 * consistent. Returns 1 if it is, else 0. A global function: the verifier checks it once.
 */
__noinline int account_copy(const struct time_account *from, struct time_account *to)
{
	if (!from || !to)
		return 0;
	for (int i = 0; i < READ_TRIES; i++) {
		__u64 sum = 0;

		__builtin_memcpy(to, from, sizeof(*to));
		for (int part = 0; part < ACCOUNT_PARTS_; part++)
			sum += to->part_ns[part];
		if (sum == to->since_ns - to->first_ns)
			return 1;
		asm volatile("" ::: "memory");
	}
	return 0;
}

/* Returns when `task` got the CPU that it runs on; 0: unknown. */
static __always_inline __u64 find_arrival(struct task_struct *task)
{
	const struct account_cpu *cpu;
	__u32 zero = 0;

	cpu = bpf_map_lookup_percpu_elem(&account_cpus, &zero,
					 BPF_CORE_READ(task, thread_info.cpu));
	return cpu && READ_WORD(cpu->task) == (__u64)task ? READ_WORD(cpu->since_ns) : 0;
}

/* Adds the open interval, since the thread last left a CPU, to the copy. */
static __always_inline void add_open(struct account_head *record, struct task_struct *task,
				     __u64 now_ns)
{
	__u64 running_ns = 0, queue_ns = BPF_CORE_READ(task, sched_info.run_delay);
	__u64 queued_ns = BPF_CORE_READ(task, sched_info.last_queued), since_ns;
	struct time_account *a = &record->account;
	struct account_split split;

	queue_ns -= a->waited_ns;
	if (BPF_CORE_READ(task, on_cpu)) {
		since_ns = find_arrival(task);
		running_ns = since_ns ? now_ns - since_ns : 0;
	} else if (queued_ns && clock_offset_ns && !BPF_CORE_READ(task, __state)) {
		queue_ns += now_ns - (__u64)clock_offset_ns - queued_ns;
	}
	account_split_time(a, now_ns, running_ns, queue_ns, &split);
	record->open_ns = split.running_ns + split.queue_ns + split.rest_ns;
	record->open_wait_ns = a->kind > ACCOUNT_QUEUE ? split.rest_ns : 0;
	account_add(a, &split);
}

/*
 * Returns the account of a thread. Creates it if the switches have not seen the thread: it has
 * slept or run since before the program was attached, or it is new and has not left its CPU yet.
 * Its state is read after the account exists: the switches see every later change.
 */
static __always_inline struct thread_times *meet_thread(struct task_struct *task,
							const struct account_key *key, __u32 index,
							__u64 now_ns, int *ret_error)
{
	bool fresh = BPF_CORE_READ(task, sched_info.pcount) <= 1 &&
		     (BPF_CORE_READ(task, on_cpu) || !BPF_CORE_READ(task, __state));
	struct thread_times *t =
		find_account(task, key, index, fresh ? 0 : now_ns, true, ret_error);
	struct time_account *a;
	unsigned int state;

	if (!t)
		return 0;
	a = &t->account;
	if (a->since_ns != (fresh ? a->born_ns : now_ns))
		return t;
	state = BPF_CORE_READ(task, __state);
	if (BPF_CORE_READ(task, on_cpu))
		a->kind = find_arrival(task) ? ACCOUNT_QUEUE : ACCOUNT_RUNNING;
	else if (state)
		a->kind = account_kind_of(task, state, &a->call);
	return t;
}

/* For a thread that has no queue record. */
static const struct thread_queue no_queue;

/* A record of no thread. */
static const struct account_record no_record;

/* Ends the reader's read(2) after each ACCOUNTS_PAUSE tasks (shared/abi/account_abi.h). */
static __always_inline void pause_accounts(struct seq_file *seq, __u64 number)
{
	if (number % ACCOUNTS_PAUSE != ACCOUNTS_PAUSE - 1)
		return;
	for (int i = 0; i < ACCOUNTS_AT_ONCE; i++)
		bpf_seq_write(seq, (void *)&no_record, sizeof(no_record));
}

/*
 * Lists the accounts of all threads in sessions, until now, and creates missing ones. The consumer
 * reads it at the begin and at the end of a session. An ended thread has its account only in the
 * map. A record is written in two parts, because a whole one does not fit the stack.
 */
SEC("iter/task")
int account_threads(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	const struct control *c = control_get();
	struct account_head record = {};
	struct account_key key = {};
	struct thread_times *t;
	int error = 0;
	__u32 index;
	__u64 now_ns;

	if (!ctx->meta->seq_num)
		account_readings++;
	if (!task || !c)
		return 0;
	pause_accounts(seq, ctx->meta->seq_num);
	if (!READ_WORD(c->armed) || !bpf_core_field_exists(task->sched_info.run_delay))
		return 0;
	if (!watch_lookup(task_keys_cgroup(kernel_cast_task(task)), &index) ||
	    !is_captured(index, true) || !scope_allows_task(task) ||
	    BPF_CORE_READ(task, exit_state))
		return 0;
	key.tid = record.tid = task->pid;
	now_ns = bpf_ktime_get_ns();
	t = meet_thread(task, &key, index, now_ns, &error);
	if (!t && account_leaves_out(task, index))
		return 0;
	if (t && account_copy(&t->account, &record.account)) {
		add_open(&record, task, now_ns);
	} else {
		record.account.flags = ACCOUNT_LOST;
		if (!t && table_was_short(error))
			record.account.flags |= ACCOUNT_SHORT;
		record.account.slot = index;
		record.account.tgid = task->tgid;
		record.account.start_ns = task_keys_read_start(task);
	}
	__builtin_memcpy(record.account.comm, task->comm, COMM_BYTES);
	bpf_seq_write(seq, &record, sizeof(record));
	if (t)
		bpf_seq_write(seq, &t->queue, sizeof(t->queue));
	else
		bpf_seq_write(seq, (void *)&no_queue, sizeof(no_queue));
	return 0;
}
