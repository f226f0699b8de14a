// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench.bpf.c: what our programs are measured against in the same run: a program that does nothing
 * (the floor of BPF statistics), one hash lookup that misses, and a filler of a ring.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "shared/abi/abi.h"
#include "tests/bench/fill.h"

/* The ring buffer's helpers are for GPL-compatible programs only. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Of the size and type of `watches`. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024 * WATCH_ENTRIES);
	__type(key, __u64);
	__type(value, struct watch_entry);
} others SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FILL_RING_BYTES);
} ring SEC(".maps");

/* The record that is written again and again; user space writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fill_record);
} record SEC(".maps");

SEC("perf_event")
int tick_floor(void *ctx)
{
	return 0;
}

SEC("tp_btf/sched_switch")
int switch_floor(void *ctx)
{
	return 0;
}

SEC("tp_btf/sched_waking")
int waking_floor(void *ctx)
{
	return 0;
}

SEC("perf_event")
int tick_miss(void *ctx)
{
	__u64 cgroup = bpf_get_current_cgroup_id();

	return bpf_map_lookup_elem(&others, &cgroup) != 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64[STACK_FRAMES]);
} stack SEC(".maps");

/* The least that a captured sample can cost: the kernel's own walk of the user stack. */
SEC("perf_event")
int tick_stack(void *ctx)
{
	__u32 zero = 0;
	void *frames = bpf_map_lookup_elem(&stack, &zero);

	return frames &&
	       bpf_get_stack(ctx, frames, sizeof(__u64[STACK_FRAMES]), BPF_F_USER_STACK) < 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(exec_floor)
{
	return 0;
}

static long fill_one(__u32 i, struct fill_args *args)
{
	__u32 zero = 0;
	struct fill_record *r = bpf_map_lookup_elem(&record, &zero);
	__u64 bytes = args->bytes;

	if (!r || bytes > sizeof(*r))
		return 1;
	if (bpf_ringbuf_output(&ring, r, bytes, BPF_RB_NO_WAKEUP))
		return 1;
	args->written++;
	return 0;
}

SEC("syscall")
int fill(struct fill_args *args)
{
	struct fill_args own = { .bytes = args->bytes };

	bpf_loop(args->count, fill_one, &own, 0);
	args->written = own.written;
	return 0;
}
