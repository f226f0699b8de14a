// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * beside.bpf.c: what takes both stacks of a tick by the kernel's helpers: the helpers alone, the
 * least that anybody who asks them can cost, and what libbpf-tools' profile does of it: two
 * bpf_get_stackid and a hash of counts.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "shared/abi/abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define STACKS_MAX 16384
#define COUNTS_MAX 10240

struct both_stacks {
	__u64 kernel[STACK_FRAMES], user[STACK_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct both_stacks);
} both SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, STACKS_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64[STACK_FRAMES]));
} stacks SEC(".maps");

struct count_key {
	__u32 tgid;
	__s32 user, kernel; /* ids in `stacks` */
	char comm[COMM_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, COUNTS_MAX);
	__type(key, struct count_key);
	__type(value, __u64);
} counts SEC(".maps");

SEC("perf_event")
int beside_floor(void *ctx)
{
	return 0;
}

SEC("perf_event")
int beside_bare(void *ctx)
{
	__u32 zero = 0;
	struct both_stacks *b = bpf_map_lookup_elem(&both, &zero);

	if (!b)
		return 0;
	bpf_get_stack(ctx, b->kernel, sizeof(b->kernel), 0);
	return bpf_get_stack(ctx, b->user, sizeof(b->user), BPF_F_USER_STACK) < 0;
}

SEC("perf_event")
int beside_profile(void *ctx)
{
	struct count_key key = { .tgid = bpf_get_current_pid_tgid() >> 32 };
	__u64 one = 1, *count;

	bpf_get_current_comm(key.comm, sizeof(key.comm));
	key.user = (__s32)bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	key.kernel = (__s32)bpf_get_stackid(ctx, &stacks, 0);
	count = bpf_map_lookup_elem(&counts, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&counts, &key, &one, BPF_NOEXIST);
	return 0;
}
