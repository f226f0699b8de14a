// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * looks.bpf.c: lets an unprivileged reader sample waiting threads. For each thread that does not
 * run and is in a cgroup of a session or of the recorder, it reports why and where the thread
 * waits, with its stacks. A thread that has not run since its last report is reported as unchanged,
 * and its stacks are not walked.
 */
#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>

#include "bpf/discovery/target_match.h"
#include "bpf/maps/task_keys.h"
#include "bpf/time/fault_entry.h"
#include "bpf/waits/look_halt.h"
#include "bpf/waits/look_on.h"
#include "bpf/waits/look_seek.h"
#include "bpf/waits/look_stack.h"
#include "bpf/waits/stops.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_captured.h"
#include "bpf/watch/watch_lookup.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * A change of one of these flags makes a new record: the freezer of cgroup v1 wakes no sleeping
 * thread.
 */
#define LOOKED_FLAGS (LOOK_RUNNABLE | LOOK_HALTED)

/* The report had a process in peer_pid, such as the holder of a lock. */
#define LOOKED_HELD (1u << 31)

/* The last report of a thread. */
struct looked {
	__u64 switches;
	__u64 generation; /* of the table that its stack was walked by; 0: none */
	__u32 epoch;	  /* control.look_epoch, plus 1 */
	__u32 flags;	  /* LOOKED_FLAGS, LOOKED_HELD */
};

/* Private. It is freed with the thread. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct looked);
} looked SEC(".maps");

/* An empty record, which ends a read. */
static const struct {
	struct look_head head;
	__u8 rest[LOOKS_READ_BYTES - sizeof(struct look_head)];
} look_pause = { .head = { .bytes = LOOKS_READ_BYTES, .flags = LOOK_PAUSE } };

/*
 * Returns 1 if the watch of slot `index`, or one around it, is sampled (`all`: is not idle) and
 * includes this kind of thread. A global function: the verifier checks its loop once.
 */
__noinline int look_wants(__u32 index, __u32 matched, __u32 kthread, __u32 all)
{
	for (__u32 i = 0; i < WATCHES_NESTED; i++) {
		const struct slot *slot = bpf_map_lookup_elem(&slots, &index);
		__u32 flags;

		if (!slot)
			return 0;
		flags = READ_WORD(slot->flags);
		if ((READ_WORD(slot->looked) || (all && READ_WORD(slot->state) != SLOT_IDLE)) &&
		    !(flags & SLOT_BY_PROCESS && !matched) &&
		    !(flags & SLOT_NO_KTHREADS && kthread))
			return 1;
		if (!watch_lookup_outer(slot, &index))
			return 0;
	}
	return 0;
}

static __always_inline __u64 read_switches(const struct task_struct *task)
{
	const struct task_struct___look *fields = (const void *)task;

	return BPF_CORE_READ(fields, nvcsw) + BPF_CORE_READ(fields, nivcsw);
}

static __always_inline __s32 read_nice(const struct task_struct *task)
{
	const struct task_struct___look *fields = (const void *)task;

	return BPF_CORE_READ(fields, static_prio) - NICE_0_PRIORITY;
}

static __always_inline bool is_running(const struct task_struct *task)
{
	const struct task_struct___look *fields = (const void *)task;

	return BPF_CORE_READ(fields, on_cpu);
}

/*
 * Returns true for a thread that lost its CPU to the reader: it has waited since the switch that
 * started the reader. A switch reads the clock once (sched_info_switch, kernel/sched/stats.h).
 * Without a reader the thread would run, so it does not count as waiting.
 */
static __always_inline bool waits_for_reader(const struct task_struct *task)
{
	const struct task_struct___look *fields = (const void *)task;
	const struct task_struct___look *reader = (const void *)bpf_get_current_task_btf();
	__u64 queued;

	if (!bpf_core_field_exists(fields->sched_info))
		return false;
	queued = BPF_CORE_READ(fields, sched_info.last_queued);
	return queued && queued == BPF_CORE_READ(reader, sched_info.last_arrival);
}

/* Returns false for a thread that has ended; else sets its flags. */
static __always_inline bool read_wait(struct look *l, const struct task_struct *task)
{
	const struct task_struct___look *fields = (const void *)task;
	__u32 state, psi = 0;

	if (BPF_CORE_READ(fields, exit_state))
		return false;
	state = BPF_CORE_READ(fields, __state);
	if (bpf_core_field_exists(fields->psi_flags))
		psi = BPF_CORE_READ(fields, psi_flags);
	l->flags = state ? look_halt(task, state) : LOOK_RUNNABLE;
	if (psi & TSK_IOWAIT)
		l->flags |= LOOK_IO;
	if (psi & TSK_MEMSTALL)
		l->flags |= LOOK_MEMORY;
	l->switches = read_switches(task);
	return true;
}

/* Returns whether the thread has user memory, as has_user_memory of sampler.bpf.c. */
static __always_inline bool has_user_stack(const struct task_struct *task)
{
	return !(BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)) &&
	       BPF_CORE_READ(task, mm) && BPF_CORE_READ(task, mm, start_code);
}

/*
 * Finds the process of the thread, and sets flags, rule and generation of the sample from it.
 * Returns false if no watch includes the thread.
 */
static __always_inline bool find_process(struct look *l, struct sample *s, struct task_struct *task,
					 const struct control *c)
{
	struct process_key key = { .tgid = BPF_CORE_READ(task, tgid),
				   .start_ns = BPF_CORE_READ(task, group_leader, start_boottime) };
	const struct target *target = bpf_map_lookup_elem(&targets, &key);
	struct target_match match;

	target_match_find(task, target, c, &match);
	l->key = key;
	l->unwind = 0;
	l->known = target != 0;
	if (target)
		l->unwind = READ_WORD(target->unwind);
	s->rule = match.rule;
	s->generation = match.generation;
	s->flags = match.matched | SAMPLE_CAPTURE;
	if (!has_user_stack(task))
		s->flags |= SAMPLE_KTHREAD;
	return look_wants(l->index, match.matched, BPF_CORE_READ(task, flags) & PF_KTHREAD,
			  READ_WORD(c->look_mode) == LOOK_ALL);
}

/*
 * Adds the process of the thread to `targets`, as a tick does (sampler.bpf.c), so that the consumer
 * can build a table for it: a hanging process has no ticks. on_exit deletes the entry. If on_exit
 * has already run, nothing else would delete it, so this function does.
 */
static __noinline void enter_target(struct look *l, struct task_struct *task,
				    const struct control *c)
{
	struct target fresh = { .rule = NO_SLOT, .generation = READ_WORD(c->generation) };
	struct process_key key = l->key;
	int r;

	if (!BPF_CORE_READ(task, signal, live.counter))
		return;
	process_marks_set(key.tgid);
	r = bpf_map_update_elem(&targets, &key, &fresh, BPF_NOEXIST);
	if (r == -E2BIG)
		TOTALS_COUNT(targets_full);
	if (!r && !BPF_CORE_READ(task, signal, live.counter))
		bpf_map_delete_elem(&targets, &key);
}

/* Returns whether the thread is unchanged since its last report, and needs no new one. */
static __always_inline bool is_as_before(const struct look *l, struct task_struct *task,
					 const struct control *c)
{
	const struct looked *last = bpf_task_storage_get(&looked, task, 0, 0);

	return last && last->epoch == READ_WORD(c->look_epoch) + 1 &&
	       last->switches == l->switches && last->generation == l->generation &&
	       (last->flags & LOOKED_FLAGS) == (l->flags & LOOKED_FLAGS) &&
	       !(last->flags & LOOKED_HELD && READ_WORD(c->look_mode) == LOOK_HELD_AGAIN);
}

/* Stores the report. If the kernel has no memory for it, the thread is walked again next time. */
static __always_inline void note_told(const struct looker *looker, struct task_struct *task,
				      __u32 epoch)
{
	const struct look *l = &looker->look;
	struct looked *last =
		bpf_task_storage_get(&looked, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!last)
		return;
	last->switches = l->switches;
	last->generation = l->generation;
	last->flags = l->flags & LOOKED_FLAGS;
	if (looker->record.on.peer_pid)
		last->flags |= LOOKED_HELD;
	last->epoch = epoch;
}

/* Sets the process that traces the thread. */
static __always_inline void look_at_tracer(struct look_on *on, const struct task_struct *task)
{
	on->kind = LOOK_ON_TRACER;
	on->number = BPF_CORE_READ(task, parent, tgid);
	BPF_CORE_READ_STR_INTO((char(*)[COMM_BYTES])on->name, task, parent, group_leader, comm);
}

/* Sets the process that sent the signal which stopped the thread, if it is known. */
static __always_inline void look_at_sender(struct look_on *on, struct task_struct *task)
{
	const struct stop *stop = bpf_task_storage_get(&stops, task->group_leader, 0, 0);

	if (!stop || !READ_WORD(stop->tgid))
		return;
	on->kind = LOOK_ON_SENDER;
	on->number = READ_WORD(stop->tgid);
	__builtin_memcpy(on->name, stop->comm, COMM_BYTES);
}

/* Sets the flag of a thread that is in a page fault and is not exiting. */
static __always_inline void note_fault(struct look_record *r, const struct task_struct *task,
				       const struct pt_regs *regs)
{
	const struct pt_regs *volatile at = regs;
	__u64 address = 0;

	/* The verifier treats a pointer that was read from memory as a number. */
	bpf_probe_read_kernel(&address, sizeof(address), (const void *)&at);
	if (r->syscall < 0 && !(BPF_CORE_READ(task, flags) & (PF_EXITING | PF_SIGNALED)) &&
	    fault_entry_is(address))
		r->head.flags |= LOOK_FAULT;
}

/* Sets the stack pointer for look_at_lock. */
static __always_inline void note_stack(__u64 sp)
{
	struct looker *l = looker_get();

	if (l)
		l->user_stack = sp;
}

/* Sets the record's members of the thread's system call, and of the object that it waits for. */
static __always_inline void fill_call(struct look_record *r, struct task_struct *task)
{
	const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	const struct task_struct___look *fields = (const void *)task;
#endif

	r->syscall = LOOK_NO_SYSCALL;
	__builtin_memset(&r->on, 0, sizeof(r->on));
	if (r->sample.flags & SAMPLE_KTHREAD)
		return;
	if (r->head.flags & LOOK_TRACED)
		look_at_tracer(&r->on, task);
	if (r->head.flags & LOOK_STOPPED)
		look_at_sender(&r->on, task);
	if (r->head.flags & LOOK_HALTED)
		return;
#if defined(__TARGET_ARCH_x86)
	if (BPF_CORE_READ(fields, thread_info.status) & TS_COMPAT)
		return;
	r->syscall = BPF_CORE_READ(regs, orig_ax);
	note_fault(r, task, regs);
	note_stack(BPF_CORE_READ(regs, sp));
	look_at_argument(r, BPF_CORE_READ(regs, di), BPF_CORE_READ(regs, si),
			 BPF_CORE_READ(regs, dx), BPF_CORE_READ(regs, r10), (__u64)regs);
#else
	r->syscall = BPF_CORE_READ(regs, syscallno);
	note_fault(r, task, regs);
	note_stack(BPF_CORE_READ(regs, sp));
	look_at_argument(r, BPF_CORE_READ(regs, orig_x0), BPF_CORE_READ(regs, regs[1]),
			 BPF_CORE_READ(regs, regs[2]), BPF_CORE_READ(regs, regs[3]), (__u64)regs);
#endif
}

/* Sets the members of the record's sample that find_process and take_stacks do not. */
static __always_inline void fill_sample(const struct look *l, struct look_record *r,
					const struct task_struct *task)
{
	const struct slot *slot = bpf_map_lookup_elem(&slots, &r->head.slot);
	struct sample *s = &r->sample;

	s->time_ns = r->head.time_ns;
	s->start_ns = l->key.start_ns;
	s->slot = r->head.slot;
	s->epoch = 0;
	if (slot)
		s->epoch = READ_WORD(slot->epoch);
	s->seq = s->cpu = 0;
	s->tgid = l->key.tgid;
	s->tid = r->head.tid;
	s->user_frames = 0;
	s->user_error = 0;
	s->stop_reason = UNWIND_END_NONE;
	s->table_generation = 0;
	s->image = BPF_CORE_READ(task, self_exec_id);
	s->call = 0;
	BPF_CORE_READ_INTO(&s->comm, task, comm);
	s->cgroup_id = l->cgroup_id;
}

/* Takes the stacks into the reader's record and sets its length. */
static __always_inline void take_stacks(struct looker *looker, struct task_struct *task)
{
	struct sample *s = &looker->record.sample;
	long r = bpf_get_task_stack(task, looker->frames, LOOK_STACK_BYTES, 0);

	s->kernel_error = 0;
	s->kernel_frames = 0;
	looker->runtime_bytes = 0;
	if (r < 0)
		s->kernel_error = r;
	else
		s->kernel_frames = r / sizeof(__u64);
	if (!(s->flags & SAMPLE_KTHREAD))
		look_at_user(looker, task);
	looker->record.head.bytes = sizeof(looker->record) +
				    (s->kernel_frames + s->user_frames) * sizeof(__u64) +
				    looker->runtime_bytes;
}

/* Writes the reader's record. Its length is in memory, so it must be limited for the verifier. */
static __always_inline void write_record(struct seq_file *seq, struct looker *looker)
{
	__u64 bytes = READ_WORD(looker->record.head.bytes);

	asm volatile("" : "+r"(bytes));
	if (bytes > sizeof(looker->record) + sizeof(looker->frames))
		bytes = sizeof(looker->record) + sizeof(looker->frames);
	bpf_seq_write(seq, &looker->record, bytes);
}

/*
 * Reports the thread with its stacks, unless it ran in the meantime: then the stacks would be from
 * two different moments.
 */
static __always_inline void tell_thread(struct seq_file *seq, struct looker *looker,
					struct task_struct *task, const struct control *c)
{
	struct look *l = &looker->look;
	__u32 epoch = READ_WORD(c->look_epoch) + 1;
	struct look_head *head = &looker->record.head;

	l->generation = 0;
	if (l->unwind) {
		struct process_key key = l->key;

		l->generation = process_table_of_image(BPF_CORE_READ(task, self_exec_id), &key,
						       l->unwind - 1);
	}
	head->time_ns = bpf_ktime_get_ns();
	head->tid = BPF_CORE_READ(task, pid);
	head->slot = l->index;
	if (is_as_before(l, task, c)) {
		head->flags = l->flags | LOOK_AS_BEFORE;
		head->bytes = sizeof(*head);
		bpf_seq_write(seq, head, sizeof(*head));
		return;
	}
	head->flags = l->flags;
	looker->record.switches = l->switches;
	looker->record.nice = read_nice(task);
	fill_call(&looker->record, task);
	look_at_mmap_lock(looker);
	looker->is_short = 0;
	/* A pass of the recorder may be the first to report a wait of a session. */
	if (READ_WORD(c->seeks) && watch_is_captured(l->index))
		look_seek();
	fill_sample(l, &looker->record, task);
	take_stacks(looker, task);
	if (read_switches(task) != l->switches || is_running(task))
		return;
	write_record(seq, looker);
	/* Otherwise the next pass reports the thread anew, and seeks again. */
	if (!READ_WORD(looker->is_short))
		note_told(looker, task, epoch);
}

/*
 * Reports all waiting threads. The cheapest tests are first, because it runs for every task on the
 * host.
 */
SEC("iter/task")
int looks(struct bpf_iter__task *ctx)
{
	const struct control *c = control_get();
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct looker *looker;
	__u64 cgroup_id;
	__u32 index;

	if (!task || !c)
		return 0;
	cgroup_id = task_keys_read_cgroup(task);
	if (ctx->meta->seq_num % LOOKS_PAUSE == LOOKS_PAUSE - 1)
		bpf_seq_write(seq, (void *)&look_pause, sizeof(look_pause));
	if (!READ_WORD(c->armed))
		return 0;
	if (!watch_lookup(cgroup_id, &index) || is_running(task) || waits_for_reader(task) ||
	    !scope_allows_task(task))
		return 0;
	looker = looker_make();
	if (!looker)
		return 0;
	looker->task = (__u64)task;
	if (looker->epoll.reading != ctx->meta->session_id) {
		looker->epoll.reading = ctx->meta->session_id;
		looker->epoll.room = LOOK_PASS_ITEMS;
		looker->epoll.walked = 0;
	}
	looker->look.index = index;
	looker->look.cgroup_id = cgroup_id;
	if (!read_wait(&looker->look, task) ||
	    !find_process(&looker->look, &looker->record.sample, task, c))
		return 0;
	if (!looker->look.known && READ_WORD(c->look_mode) != LOOK_ALL &&
	    !(looker->record.sample.flags & SAMPLE_KTHREAD))
		enter_target(&looker->look, task, c);
	tell_thread(seq, looker, task, c);
	return 0;
}
