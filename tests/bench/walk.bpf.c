// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * walk.bpf.c: user stacks taken and thrown away, in each of the ways there are: what a walk costs
 * without all else that a sample needs. The maps of the tables are those of a running agent.
 */
#include "tests/bench/walk.h"
#include "bpf/kernel/kernel_cast.h"
#include "bpf/maps/task_keys.h"
#include "bpf/stack/kernel_stack.h"
#include "bpf/stack/stack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WALK_KINDS);
	__type(key, __u32);
	__type(value, struct walk_want);
} wants SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WALK_KINDS);
	__type(key, __u32);
	__type(value, struct walk_count);
} counts SEC(".maps");

/* The count of `kind` when the tick met the process that it is to meet, else NULL. */
static __always_inline struct walk_count *met(__u32 kind, __u32 *ret_table)
{
	const struct walk_want *want = bpf_map_lookup_elem(&wants, &kind);

	if (!want || bpf_get_current_pid_tgid() >> 32 != want->tgid)
		return 0;
	*ret_table = want->table;
	return bpf_map_lookup_elem(&counts, &kind);
}

SEC("perf_event")
int walk_none(void *ctx)
{
	__u32 table;
	struct walk_count *c = met(WALK_NONE, &table);

	if (c)
		c->hits++;
	return 0;
}

SEC("perf_event")
int walk_rows(void *ctx)
{
	__u32 zero = 0, table;
	struct walk_count *c = met(WALK_ROWS, &table);
	struct stack_buffer *b = bpf_map_lookup_elem(&stack_scratch, &zero);
	struct task_struct *task;
	struct process_key key;

	if (!c || !b)
		return 0;
	task = bpf_get_current_task_btf();
	task_keys_process(task, &key);
	if (!stack_walk(&key, 0, table))
		return 0;
	c->hits++;
	c->frames += b->sample.user_frames;
	c->complete += b->sample.stop_reason == UNWIND_END_COMPLETE;
	return 0;
}

static __always_inline int by_helper(void *ctx, __u32 kind, __u64 flags, __u32 bytes, __u32 frame)
{
	__u32 zero = 0, table;
	struct walk_count *c = met(kind, &table);
	struct stack_buffer *b = bpf_map_lookup_elem(&stack_scratch, &zero);
	long r;

	if (!c || !b)
		return 0;
	r = bpf_get_stack(ctx, b->frames, bytes, flags);
	if (r <= 0)
		return 0;
	c->hits++;
	c->frames += (__u64)r / frame;
	return 0;
}

SEC("perf_event")
int walk_pointers(void *ctx)
{
	return by_helper(ctx, WALK_POINTERS, BPF_F_USER_STACK, USER_RAW_BYTES, sizeof(__u64));
}

SEC("perf_event")
int walk_ids(void *ctx)
{
	return by_helper(ctx, WALK_IDS, BPF_F_USER_STACK | BPF_F_USER_BUILD_ID, USER_ID_BYTES,
			 sizeof(struct frame_build_id));
}

/* Whether the tick met the kernel. */
static __always_inline bool in_kernel(void *ctx)
{
	return !tick_is_user(*(volatile __u64 *)((char *)ctx + TICK_MODE_OFFSET));
}

SEC("perf_event")
int walk_kernel(void *ctx)
{
	__u32 zero = 0, table;
	struct walk_count *c = met(WALK_KERNEL, &table);
	struct stack_buffer *b = bpf_map_lookup_elem(&stack_scratch, &zero);

	if (!c || !b || !in_kernel(ctx))
		return 0;
	c->hits++;
	c->complete += try_walk(ctx, b) > 0;
	return 0;
}

SEC("perf_event")
int walk_asked(void *ctx)
{
	__u32 zero = 0, table;
	struct walk_count *c = met(WALK_ASKED, &table);
	struct stack_buffer *b = bpf_map_lookup_elem(&stack_scratch, &zero);
	long r;

	if (!c || !b || !in_kernel(ctx))
		return 0;
	r = bpf_get_stack(ctx, b->frames, KERNEL_STACK_BYTES, 0);
	if (r <= 0)
		return 0;
	c->hits++;
	c->frames += (__u64)r / sizeof(__u64);
	return 0;
}
