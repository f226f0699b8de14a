// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sampler.bpf.c: samples the task that a CPU_CLOCK event interrupts. The program runs in interrupt
 * context on every CPU, for every task, so the cheapest test comes first. If nothing is watched, it
 * is one load; for a task of another cgroup it is one hash lookup that misses and one more load.
 * Only then does the program read more. While a session runs it also counts the cgroup of each tick
 * (neighbours.h).
 */
#include <linux/errno.h>

#include "bpf/cpu/neighbours.h"
#include "bpf/cpu/tick_call.h"
#include "bpf/cpu/tick_runtime.h"
#include "bpf/discovery/process_marks.h"
#include "bpf/discovery/target_match.h"
#include "bpf/maps/event_ring.h"
#include "bpf/maps/task_keys.h"
#include "bpf/stack/kernel_stack.h"
#include "bpf/stack/stack.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_lookup.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * Recorder phases, one per slot modulo PHASES. Two slots that share one get their ticks less
 * evenly, but lose none.
 */
#define PHASES 1024u

_Static_assert((PHASES & (PHASES - 1)) == 0, "PHASES is a mask");
_Static_assert(DROP_STALE < SLOT_LOST_REASONS && DROP_STACK_USER < SLOT_LOST_REASONS,
	       "a drop reason has no counter");
_Static_assert(UNWIND_END_COUNT_ <= UNWIND_STOP_REASONS, "an end of a walk has no counter");

MAP(PERCPU_ARRAY, phases, __u32, __u32, PHASES);

/* 1 from the wake-up at control.wake_bytes until the ring again holds less than that. */
MAP(ARRAY, sample_wake, __u32, __u32, 1);

/* The data about a tick that is known before the sample is taken. */
struct tick {
	void *ctx;
	const struct control *control;
	struct stack_buffer *buffer;
	struct task_struct *task;
	struct process_key key;
	__u64 cgroup_id;
	__u64 now_ns;
	__u32 index; /* slot of the nearest watch */
	struct target_match match;
	__u32 flags;	       /* enum sample_flag */
	struct target *target; /* NULL: the process has no entry yet */
	__u32 unwind;	       /* target.unwind */
};

/* Returns true if the recorder drops this tick: it takes one tick in control.divisor. */
static __always_inline bool skips_recorder_tick(const struct control *c, __u32 index)
{
	__u32 phase = index & (PHASES - 1), divisor = READ_WORD(c->divisor);
	__u32 *ticks = bpf_map_lookup_elem(&phases, &phase);

	if (!ticks)
		return true;
	if (!divisor || divisor > DIVISOR_MAX)
		divisor = RECORDER_DIVISOR;
	if (++*ticks < divisor)
		return true;
	*ticks = 0;
	return false;
}

/*
 * Adds a process that has no entry to `targets`, so that the consumer reads its mappings. Returns
 * true if this call added it. Not inlined, like all code that only a few ticks need: at a tick no
 * code is in a cache, so the code that every tick runs is kept together.
 */
static __noinline bool enter_target(const struct tick *t)
{
	struct target fresh = { .flags = READ_WORD(t->buffer->takers.capture) ? TARGET_WOKEN : 0,
				.rule = NO_SLOT,
				.generation = READ_WORD(t->control->generation) };
	int r; /* not long: before 6.4 the upper half of a map operation's result is garbage */

	/* on_exit has deleted the entry or is about to: nothing would delete a new one. */
	if (t->task->flags & PF_EXITING)
		return false;
	process_marks_set(t->key.tgid);
	r = bpf_map_update_elem(&targets, &t->key, &fresh, BPF_NOEXIST);
	/*
	 * For other errors a second CPU was first, or holds the bucket; the next tick tries again.
	 */
	if (r != -E2BIG)
		return !r;
	TOTALS_COUNT(targets_full);
	error_ring_put(ERROR_TARGETS_FULL, r, t->index, NO_SLOT, sizeof(fresh));
	return false;
}

/*
 * Returns true if the consumer must be woken to read the mappings of this process: they can be read
 * only while it lives, which may be shorter than the time to the next drain. At most once per
 * image, and only in a capture.
 */
static __always_inline bool needs_mappings(const struct tick *t)
{
	struct target *target = t->target;

	if (t->flags & SAMPLE_KTHREAD)
		return false;
	if (!target)
		return enter_target(t) && READ_WORD(t->buffer->takers.capture);
	if (!READ_WORD(t->buffer->takers.capture) || target->flags & (TARGET_MAPPED | TARGET_WOKEN))
		return false;
	target->flags |= TARGET_WOKEN;
	return true;
}

/* Sets all members that do not depend on the watch that takes the sample. */
static __always_inline void fill_sample(const struct tick *t, struct sample *s)
{
	s->time_ns = t->now_ns;
	s->start_ns = t->key.start_ns;
	s->cpu = bpf_get_smp_processor_id();
	s->tgid = t->key.tgid;
	s->tid = t->task->pid;
	s->flags = t->flags | t->match.matched | tick_call_stall(t->task);
	s->table_generation = 0;
	s->image = t->task->self_exec_id;
	s->call = tick_call_number(t->task, t->flags & SAMPLE_IN_USER);
	task_keys_copy_name(t->task, s->comm);
	s->rule = t->match.rule;
	s->generation = t->match.generation;
	s->cgroup_id = t->cgroup_id;
}

/* A CPU checks the fill level of the ring at one in WAKE_LOOKS_EVERY of its records. */
#define WAKE_LOOKS_EVERY 4u

/*
 * Returns the wake-up flag for the next record: forced if the consumer has mappings to read, and
 * once when the ring passes wake_bytes.
 */
static __always_inline __u64 choose_wake_flag(const struct control *c, struct stack_buffer *b)
{
	__u32 wake_bytes, *woken;

	if (READ_WORD(b->calls))
		return BPF_RB_FORCE_WAKEUP;
	if (++b->puts % WAKE_LOOKS_EVERY)
		return BPF_RB_NO_WAKEUP;
	wake_bytes = READ_WORD(c->wake_bytes);
	if (!wake_bytes)
		return BPF_RB_NO_WAKEUP;
	woken = map_single(&sample_wake);
	if (!woken)
		return BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) < wake_bytes) {
		if (*woken)
			*woken = 0;
		return BPF_RB_NO_WAKEUP;
	}
	if (*woken)
		return BPF_RB_NO_WAKEUP;
	*woken = 1;
	return BPF_RB_FORCE_WAKEUP;
}

/* Counts a tick for which no frame could be read. */
static __noinline void count_lost_stack(const struct sample *s, struct slot_counters *c)
{
	bool in_user = s->flags & SAMPLE_IN_USER;

	if (in_user)
		c->lost[DROP_STACK_USER]++;
	else
		c->lost[DROP_STACK_KERNEL]++;
	if (!s->user_error && !s->kernel_error)
		error_ring_put(in_user ? ERROR_USER_STACK : ERROR_KERNEL_STACK, 0, s->slot, s->rule,
			       0);
}

/*
 * The sampler asks for new mappings of one table at most once in this time; unwind_process.quiet_ns
 * may make it longer.
 */
#define UNMAPPED_EVERY_NS 100000000ull

/*
 * Reports a stack that left the mappings of the table: the process has loaded a library or created
 * memory for code since. All stop reasons that depend on memory cause the same event, or the event
 * would reveal which one it was. The event asks the consumer to read the mappings again. The first
 * event of a table wakes the consumer at once: the program has just started or has just loaded a
 * library. The consumer limits how many tables a process gets.
 */
static __noinline void report_unmapped(const struct tick *t)
{
	__u32 number = t->unwind - 1;
	struct unwind_ranges *r = bpf_map_lookup_elem(&unwind_ranges, &number);
	const struct unwind_process *p = bpf_map_lookup_elem(&unwind_process, &number);
	struct event event = {};
	__u64 last_ns, since_ns;

	/*
	 * A forked child that still uses its parent's table gets its own soon; do not request its
	 * mappings.
	 */
	if (!r || !p || !process_table_is_own(r, &t->key))
		return;
	last_ns = READ_WORD(r->unmapped_ns);
	since_ns = t->now_ns - last_ns;
	if (since_ns < UNMAPPED_EVERY_NS || since_ns < READ_WORD(p->quiet_ns))
		return;
	r->unmapped_ns = t->now_ns;
	event.time_ns = t->now_ns;
	event.start_ns = t->key.start_ns;
	event.kind = EVENT_UNMAPPED;
	event.tgid = t->key.tgid;
	event.rule = t->match.rule;
	event.generation = READ_WORD(t->control->generation);
	bpf_get_current_comm(event.comm, sizeof(event.comm));
	event_ring_submit(&event, sizeof(event), !last_ns);
}

/* Counts the stop reason of a walk by a table. */
static __always_inline void count_stop_reason(const struct tick *t, const struct sample *s)
{
	struct totals *totals = totals_get();

	if (!(s->flags & SAMPLE_UNWOUND))
		return;
	if (totals)
		totals->unwind_stop_reasons[s->stop_reason & (UNWIND_STOP_REASONS - 1)]++;
	if (s->stop_reason == UNWIND_END_NO_MAPPING || s->stop_reason == UNWIND_END_CHANGED ||
	    (s->stop_reason == UNWIND_END_NO_CALLER && !(s->flags & SAMPLE_BY_POINTER)))
		report_unmapped(t);
}

/* Puts the sample with its `bytes` bytes of frames into the ring for one watch. */
static __always_inline void put_sample(const struct control *control, const struct taker *taker,
				       struct stack_buffer *b, __u64 bytes)
{
	struct slot_counters *c = bpf_map_lookup_elem(&counters, &taker->slot);
	long r;

	if (!c)
		return;
	b->sample.slot = taker->slot;
	b->sample.epoch = taker->epoch;
	b->sample.seq = taker->seq;
	b->sample.flags = (b->sample.flags & ~SAMPLE_CAPTURE) | taker->capture;
	if (!bytes) {
		count_lost_stack(&b->sample, c);
		return;
	}
	r = bpf_ringbuf_output(&samples, &b->sample, sizeof(b->sample) + bytes,
			       choose_wake_flag(control, b));
	if (r) {
		c->lost[DROP_RING_FULL]++;
		error_ring_put(ERROR_SAMPLES_FULL, r, taker->slot, b->sample.rule,
			       sizeof(b->sample) + bytes);
		return;
	}
	c->emitted++;
}

/*
 * Puts the sample in stack_scratch, with its `bytes` bytes of frames, into the ring for each taker.
 * A global function: the verifier checks it once, and not after each path through the walk.
 */
__noinline int sampler_put(__u64 bytes)
{
	const struct control *control = control_get();
	struct stack_buffer *b = map_single(&stack_scratch);

	if (!control || !b)
		return 0;
	bytes = bound_bytes((long)bytes, sizeof(b->frames));
	for (__u32 i = 0; i < WATCHES_NESTED && i < READ_WORD(b->takers.count); i++)
		put_sample(control, &b->takers.items[i], b, bytes);
	return 0;
}

static __always_inline void take_sample(const struct tick *t)
{
	struct stack_owner owner = { .key = &t->key, .unwind = t->unwind };
	struct stack_buffer *b;
	__u32 want = 0;
	__u64 bytes;

	/* Not t->buffer: the verifier would track more states. */
	b = map_single(&stack_scratch);
	if (!b)
		return;
	fill_sample(t, &b->sample);
	/* Kept in memory: with a local variable the verifier would check all later code twice. */
	b->calls = needs_mappings(t);
	kernel_stack_take(t->ctx, b, !(t->flags & SAMPLE_IN_USER));
	if (!(t->flags & SAMPLE_KTHREAD))
		want |= STACK_USER;
	if (t->flags & SAMPLE_BUILD_ID)
		want |= STACK_BUILD_ID;
	bytes = stack_take(t->ctx, &owner, b, want);
	if (READ_WORD(b->sample.flags) & SAMPLE_UNWOUND)
		bytes = bound_bytes(bytes + tick_runtime(bytes, t->unwind - 1, t->index),
				    sizeof(b->frames));
	count_stop_reason(t, &b->sample);
	if (b->sample.kernel_error)
		error_ring_put(ERROR_KERNEL_STACK, b->sample.kernel_error, t->index, t->match.rule,
			       KERNEL_STACK_BYTES);
	if (b->sample.user_error)
		error_ring_put(ERROR_USER_STACK, b->sample.user_error, t->index, t->match.rule,
			       USER_ID_BYTES);
	sampler_put(bytes);
}

/*
 * Returns true if the user registers belong to existing user memory. This is false for a kernel
 * thread, and for a thread of the process that was never in user mode. It is false late in exit(2),
 * which drops the memory (exit_mm of kernel/exit.c). It is false in execve(2) from the switch to
 * the new memory, through the release of the old memory, which may take long, until the new program
 * is loaded (load_elf_binary of fs/binfmt_elf.c sets start_code).
 */
static __always_inline bool has_user_memory(struct task_struct *task)
{
	return !(task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)) &&
	       BPF_CORE_READ(task, mm, start_code);
}

/*
 * Returns the flags of the sample. The mode comes from one volatile read of the registers
 * (kernel.h).
 */
static __always_inline __u32 find_sample_flags(const struct tick *t, const struct target *target)
{
	bool has_memory = has_user_memory(t->task);
	__u32 flags = 0;

	if (tick_is_user(*(volatile __u64 *)((char *)t->ctx + TICK_MODE_OFFSET)))
		flags |= SAMPLE_IN_USER;
	if (!has_memory)
		flags |= SAMPLE_KTHREAD;
	else if (!target || !(target->flags & TARGET_MAPPED) ||
		 READ_WORD(target->image) != (__u32)t->task->self_exec_id)
		flags |= SAMPLE_BUILD_ID;
	return flags;
}

/* Returns true if the slot excludes this kind of task. */
static __always_inline bool excludes_task(const struct slot *slot, __u32 matched, __u32 kthread)
{
	__u32 flags = READ_WORD(slot->flags);

	return (flags & SLOT_BY_PROCESS && !matched) || (flags & SLOT_NO_KTHREADS && kthread);
}

/* Adds the watch of slot `index`, which wants this tick, to the takers, and counts its attempt. */
static __always_inline void add_taker(struct takers *takers, const struct slot *slot, __u32 index,
				      __u32 state)
{
	struct slot_counters *c = bpf_map_lookup_elem(&counters, &index);
	__u32 n = READ_WORD(takers->count);
	struct taker *taker = &takers->items[n & (WATCHES_NESTED - 1)];

	if (!c)
		return;
	taker->slot = index;
	taker->epoch = READ_WORD(slot->epoch);
	taker->seq = (__u32)c->attempted++;
	taker->capture = state == SLOT_CAPTURE ? SAMPLE_CAPTURE : 0;
	takers->capture |= taker->capture;
	takers->count = n + 1;
}

/*
 * Finds the watches that take this tick: that of slot `index`, and those around it. Returns their
 * number. A global function, as sampler_put.
 */
__noinline int sampler_choose(__u32 index, __u32 matched, __u32 kthread)
{
	const struct control *control = control_get();
	struct stack_buffer *b = map_single(&stack_scratch);
	struct takers *takers;
	bool met = false;

	if (!control || !b)
		return 0;
	takers = &b->takers;
	takers->count = takers->capture = 0;
	for (__u32 i = 0; i < WATCHES_NESTED; i++) {
		const struct slot *slot = bpf_map_lookup_elem(&slots, &index);
		__u32 state;

		if (!slot)
			break;
		/* Read once: the consumer may change it at any time. */
		state = READ_WORD(slot->state);
		if ((state == SLOT_RECORDER || state == SLOT_CAPTURE) &&
		    !excludes_task(slot, matched, kthread)) {
			met = true;
			if (state == SLOT_CAPTURE || !skips_recorder_tick(control, index))
				add_taker(takers, slot, index, state);
		}
		if (!watch_lookup_outer(slot, &index))
			break;
	}
	if (met)
		TOTALS_COUNT(ticks_watched);
	return (int)READ_WORD(takers->count);
}

/* Counts the attempts as lost because the consumer is dead. */
static __noinline void lose_stale(const struct tick *t)
{
	TOTALS_COUNT(stale_ticks);
	for (__u32 i = 0; i < WATCHES_NESTED && i < READ_WORD(t->buffer->takers.count); i++) {
		struct slot_counters *c =
			bpf_map_lookup_elem(&counters, &t->buffer->takers.items[i].slot);

		if (c)
			c->lost[DROP_STALE]++;
	}
}

/* Handles a tick of a watched cgroup. */
static __always_inline void handle_watched_tick(struct tick *t)
{
	struct target *target;

	/* Skip the idle task: it is in the root cgroup, which is watched on hybrid hosts. */
	if (!t->task->pid || !scope_allows_task(t->task))
		return;
	task_keys_read_process(t->task, &t->key);
	target = bpf_map_lookup_elem(&targets, &t->key);
	target_match_find(t->task, target, t->control, &t->match);
	t->buffer = map_single(&stack_scratch);
	if (!t->buffer)
		return;
	if (!sampler_choose(t->index, t->match.matched, t->task->flags & PF_KTHREAD))
		return;
	t->now_ns = bpf_ktime_get_ns();
	if (watch_lookup_is_stale(t->control, t->now_ns)) {
		lose_stale(t);
		return;
	}
	t->unwind = target ? READ_WORD(target->unwind) : 0;
	t->flags = find_sample_flags(t, target);
	t->target = target;
	take_sample(t);
}

SEC("perf_event")
int sampler(struct bpf_perf_event_data *ctx)
{
	struct tick t; /* not zeroed: each tick of another process would pay for it */
	bool watched;

	t.ctx = ctx;
	t.control = control_get();
	if (!t.control || !READ_WORD(t.control->armed))
		return 0;
	t.task = bpf_get_current_task_btf();
	t.cgroup_id = bpf_get_current_cgroup_id();
	watched = watch_lookup(t.cgroup_id, &t.index);
	if (READ_WORD(t.control->sessions))
		neighbours_count(t.cgroup_id, watched ? t.index : NO_SLOT,
				 *(volatile __u64 *)((char *)ctx + TICK_PERIOD_OFFSET));
	if (!watched)
		return 0;
	handle_watched_tick(&t);
	return 0;
}
