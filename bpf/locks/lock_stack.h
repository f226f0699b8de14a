/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lock_stack.h: takes the stack of the thread that wakes another one, and puts it into the samples
 * ring. It runs under the lock of the woken task with interrupts off, so it may use the tick's
 * buffers: no tick can interrupt it, and nothing in it faults or waits (stack.h).
 */
#ifndef TROCAR_BPF_LOCKS_LOCK_STACK_H
#define TROCAR_BPF_LOCKS_LOCK_STACK_H

#include "bpf/maps/task_keys.h"
#include "bpf/stack/stack.h"
#include "bpf/watch/watch_lookup.h"

MAP(PERCPU_ARRAY, lock_losses, __u32, struct slot_locks, SLOTS_DEFAULT);

#define LOCK_STACK_FRAMES_BYTES (KERNEL_STACK_BYTES + USER_RAW_BYTES)

/* Sets all members of the sample that depend neither on the watch nor on the stack. */
static __always_inline void lock_stack_fill(struct sample *s, struct task_struct *task,
					    const struct process_key *key, __u64 now_ns)
{
	s->time_ns = now_ns;
	s->start_ns = key->start_ns;
	s->seq = 0;
	s->cpu = bpf_get_smp_processor_id();
	s->tgid = key->tgid;
	s->tid = task->pid;
	s->flags = SAMPLE_WAKER | SAMPLE_CAPTURE;
	s->kernel_frames = 0;
	s->kernel_error = 0;
	s->table_generation = 0;
	s->image = task->self_exec_id;
	s->call = 0;
	bpf_get_current_comm(s->comm, sizeof(s->comm));
	s->rule = NO_SLOT;
	s->generation = 0;
	s->cgroup_id = task_keys_read_cgroup(task);
}

/*
 * Puts the sample in stack_scratch, with `bytes` bytes after its head, into the ring once for each
 * watch that captures. The nearest watch is in slot `index`. `empty` samples are only counted. A
 * global function: the verifier checks it once.
 */
__noinline int lock_stack_put(__u32 index, __u64 bytes, __u32 empty)
{
	struct stack_buffer *b = map_single(&stack_scratch);
	struct slot_locks *losses;
	const struct slot *slot;

	if (!b)
		return 0;
	bytes = bound_bytes((long)bytes, sizeof(b->frames));
	losses_for_each (losses, lock_losses, slot, index) {
		if (READ_WORD(slot->state) == SLOT_CAPTURE) {
			b->sample.slot = index;
			b->sample.epoch = READ_WORD(slot->epoch);
			losses->stacks++;
			if (empty)
				losses->no_frame++;
			else if (bpf_ringbuf_output(&samples, &b->sample, sizeof(b->sample) + bytes,
						    BPF_RB_NO_WAKEUP))
				losses->ring_full++;
		}
	}
	return 0;
}

/* Takes the user stack of the running thread, with a weight of `weight_ns` for that lock. */
static __noinline int lock_stack_take(void *ctx, const struct lock_key *lock, __u64 weight_ns,
				      __u64 now_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct process_key key;
	struct stack_owner owner = { .key = &key };
	const struct target *target;
	struct sample_waker *waker;
	struct stack_buffer *b;
	__u64 bytes;

	b = map_single(&stack_scratch);
	if (!b || task->flags & PF_KTHREAD || !BPF_CORE_READ(task, mm))
		return 0;
	task_keys_read_process(task, &key);
	target = bpf_map_lookup_elem(&targets, &key);
	if (target)
		owner.unwind = READ_WORD(target->unwind);
	lock_stack_fill(&b->sample, task, &key, now_ns);
	bytes = bound_bytes(stack_take(ctx, &owner, b, STACK_USER), LOCK_STACK_FRAMES_BYTES);
	waker = (void *)(b->frames + bytes);
	waker->weight_ns = weight_ns;
	waker->lock = *lock;
	return lock_stack_put(lock->slot, bytes + sizeof(*waker), !bytes);
}

#endif
