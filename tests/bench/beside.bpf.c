// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * beside.bpf.c: what takes both stacks of a tick by the kernel's helpers: the helpers alone, the
 * least cost of any caller, and the part that libbpf-tools' profile uses: two bpf_get_stackid and a
 * hash of counts. And a program that only touches the least memory of a sampler like ours.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/kernel/kernel_orc.h"
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

#define LEAST_GROUPS 1024
#define LEAST_ROWS   32768 /* bytes of rows that are remembered: a cache line for 8 frames */
#define LEAST_INDEX \
	32768 /* bytes of the index of a program's rows, of the rows, and of the rules */
#define LEAST_TABLE  524288
#define LEAST_RULES  16384
#define LEAST_STACK  512 /* bytes of a stack that 8 frames lie in */
#define LEAST_PAGE   4096
#define LEAST_FRAMES 18 /* of redis-server: 8 of the kernel, 10 of the program */
#define LEAST_RING   (1u << 24)

struct least_record {
	struct sample sample;
	__u64 frames[LEAST_FRAMES];
};

struct least_scratch {
	struct least_record record;
	__u64 words[LEAST_STACK / sizeof(__u64)];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct least_scratch);
} least_scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LEAST_GROUPS);
	__type(key, __u64);
	__type(value, __u64);
} least_groups SEC(".maps");

struct least_rows {
	__u64 items[LEAST_ROWS / sizeof(__u64)];
};

/* Of programs of the size of a redis-server with its libraries. All zeros. */
struct least_table {
	__u64 index[LEAST_INDEX / sizeof(__u64)];
	__u64 rows[LEAST_TABLE / sizeof(__u64)];
	__u64 rules[LEAST_RULES / sizeof(__u64)];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct least_table);
} least_table SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct least_rows);
} least_rows SEC(".maps");

/* Nobody reads it: it has room for all ticks of a run. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, LEAST_RING);
} least_ring SEC(".maps");

/* Reads a part of a stack, up to the end of its page as our walk does, and a row of where it is. */
static __always_inline void least_touch(struct least_scratch *s, struct least_rows *rows, __u64 ip,
					__u64 sp, bool user)
{
	__u64 bytes = LEAST_PAGE - (sp & (LEAST_PAGE - 1));

	asm volatile("" : "+r"(bytes));
	if (bytes > LEAST_STACK)
		bytes = LEAST_STACK;
	if (user)
		bpf_probe_read_user(s->words, bytes, (const void *)sp);
	else
		bpf_probe_read_kernel(s->words, bytes, (const void *)sp);
	s->record.frames[user] += s->words[7];
	s->record.frames[user] += rows->items[(ip >> 4) & (LEAST_ROWS / sizeof(__u64) - 1)];
}

/*
 * The search for the rule of an address that was not met before: a word of the index, for the place
 * of its rows, one of these, for the rule, and that. Each read waits for the last.
 */
static __always_inline __u64 least_search(__u64 ip)
{
	__u32 zero = 0;
	const struct least_table *t = bpf_map_lookup_elem(&least_table, &zero);
	__u64 at;

	if (!t)
		return 0;
	at = t->index[(ip >> 9) & (LEAST_INDEX / sizeof(__u64) - 1)];
	at = t->rows[((ip >> 4) + at) & (LEAST_TABLE / sizeof(__u64) - 1)];
	return t->rules[((ip >> 5) + at) & (LEAST_RULES / sizeof(__u64) - 1)];
}

/*
 * Whose tick it is (the cgroup, by one lookup, and the thread), the stacks' words, a line of rows
 * for a leaf, one for its callers, and a record as large as ours; in user mode the search for a
 * leaf, which may be anywhere. No walk, no choice, no count.
 */
SEC("perf_event")
int beside_least(const volatile __u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);
	__u64 group = bpf_get_current_cgroup_id(), one = 1, ip = ctx[ORC_PT_IP / 8];
	__u64 *known = bpf_map_lookup_elem(&least_groups, &group);
	__u32 zero = 0;
	struct least_scratch *s = bpf_map_lookup_elem(&least_scratches, &zero);
	struct least_rows *rows = bpf_map_lookup_elem(&least_rows, &zero);

	if (!known)
		return bpf_map_update_elem(&least_groups, &group, &one, BPF_NOEXIST) < 0;
	if (!s || !rows)
		return 0;
	s->record.sample.time_ns = bpf_ktime_get_ns();
	s->record.sample.start_ns = task->group_leader->start_boottime;
	s->record.sample.tgid = task->tgid;
	s->record.sample.tid = task->pid;
	s->record.sample.cgroup_id = group;
	__builtin_memcpy(s->record.sample.comm, task->comm, COMM_BYTES);
	if (!tick_is_user(ctx[TICK_MODE_OFFSET / 8])) {
		least_touch(s, rows, ip, ctx[ORC_PT_SP / 8], false);
		s->record.frames[0] += rows->items[7];
	} else {
		s->record.frames[1] += least_search(ip);
	}
	least_touch(s, rows, regs->ip, regs->sp, true);
	s->record.frames[1] += rows->items[64];
	bpf_ringbuf_output(&least_ring, &s->record, sizeof(s->record), BPF_RB_NO_WAKEUP);
	return 0;
}
