// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * alone.bpf.c: a sampler that gets the process of its ticks and the table of their stacks as
 * constants: it walks both stacks as the agent's sampler does, and puts them into a ring. It looks
 * for no watch and no process, chooses nothing and counts nothing. Its cost is that of stacks by
 * rows alone. The maps of the tables are those of a running agent.
 */
#include "tests/bench/alone.h"
#include "bpf/kernel/kernel_cast.h"
#include "bpf/maps/task_keys.h"
#include "bpf/stack/kernel_stack.h"
#include "bpf/stack/stack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The table of a process plus 1, by the last bits of its number; 0: none. User space writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ALONE_PROCESSES);
	__type(key, __u32);
	__type(value, __u32);
} alone_tables SEC(".maps");

/* Nobody reads it: it has room for all ticks of a run. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1u << 24);
} alone_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct alone_counts);
} alone_counts SEC(".maps");

SEC("perf_event")
int walk_alone(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 zero = 0, number = task->tgid & (ALONE_PROCESSES - 1);
	const __u32 *table = bpf_map_lookup_elem(&alone_tables, &number);
	struct stack_buffer *b = bpf_map_lookup_elem(&stack_scratch, &zero);
	bool in_user = tick_is_user(*(volatile __u64 *)((char *)ctx + TICK_MODE_OFFSET));
	struct alone_counts *c = bpf_map_lookup_elem(&alone_counts, &zero);
	struct process_key key;
	__u64 bytes, user_bytes;

	if (!table || !b || !c)
		return 0;
	if (!*table) {
		c->missed++;
		return 0;
	}
	task_keys_process(task, &key);
	b->sample.time_ns = bpf_ktime_get_ns();
	b->sample.start_ns = key.start_ns;
	b->sample.tgid = key.tgid;
	b->sample.tid = task->pid;
	b->sample.flags = in_user ? SAMPLE_IN_USER : 0;
	task_keys_copy_name(task, b->sample.comm);
	kernel_stack_take(ctx, b, !in_user);
	bytes = bound_bytes(READ_WORD(b->sample.kernel_frames) * sizeof(__u64), KERNEL_STACK_BYTES);
	user_bytes = bound_bytes(stack_walk(&key, bytes, *table - 1), USER_RAW_BYTES);
	if (user_bytes)
		c->walked++;
	else
		c->missed++;
	bytes += user_bytes;
	bpf_ringbuf_output(&alone_ring, &b->sample,
			   sizeof(b->sample) + bound_bytes((long)bytes, sizeof(b->frames)),
			   BPF_RB_NO_WAKEUP);
	return 0;
}
