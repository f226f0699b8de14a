/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maps.h: the maps that more than one program uses. They are weak: each object file defines them
 * and the static linker keeps one of each. Their names are those of shared/abi/pins.def. The sizes
 * here are defaults: the loader sets the sizes before it loads the programs.
 */
#ifndef TROCAR_BPF_MAPS_MAPS_H
#define TROCAR_BPF_MAPS_MAPS_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "shared/abi/abi.h"

#define SLOTS_DEFAULT	1024
#define TARGETS_DEFAULT 16384
#define RULES_DEFAULT	10240
#define TABLES_DEFAULT	512

#define READ_WORD(x) (*(const volatile __typeof__(x) *)&(x))

/*
 * Reads a word that its writer stores last, with release, after the data that the word announces:
 * later reads see that data or newer, and earlier reads saw nothing newer than the word. x86-64
 * keeps loads in order, so a compiler barrier is enough. On arm64 it is an atomic that returns a
 * value, which orders everything (Documentation/atomic_t.txt; the load-acquire of BPF needs Linux
 * 6.15).
 */
#if defined(__TARGET_ARCH_x86)
#define READ_ORDERED(x)                                \
	({                                             \
		__typeof__(+(x)) word_ = READ_WORD(x); \
		asm volatile("" ::: "memory");         \
		word_;                                 \
	})
#else
#define READ_ORDERED(x) __sync_fetch_and_add((__typeof__(+(x)) *)&(x), 0)
#endif

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct abi_header);
} abi __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SLOTS_DEFAULT);
	__type(key, __u32);
	__type(value, struct slot);
} slots __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS_DEFAULT);
	__type(key, __u32);
	__type(value, struct slot_counters);
} counters __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS_DEFAULT);
	__type(key, __u32);
	__type(value, struct slot_switches);
} switches __weak SEC(".maps");

/* No program uses it: the broker counts in it and the consumer reads it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct broker_counts);
} broker __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} totals __weak SEC(".maps");

/*
 * Preallocated: the sampler reads it in interrupt context, and a miss must cost no more than one
 * bucket.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SLOTS_DEFAULT *WATCH_ENTRIES);
	__type(key, __u64);
	__type(value, struct watch_entry);
} watches __weak SEC(".maps");

/* Preallocated: the sampler inserts in interrupt context. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARGETS_DEFAULT);
	__type(key, struct process_key);
	__type(value, struct target);
} targets __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, RULES_DEFAULT);
	__type(key, struct comm_key);
	__type(value, struct rule_value);
} rules_a __weak SEC(".maps"), rules_b __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, RULES_DEFAULT);
	__type(key, struct cgroup_key);
	__type(value, struct rule_value);
} cgroups_a __weak SEC(".maps"), cgroups_b __weak SEC(".maps");

/* The cgroup prefixes of the loader's --scope (scope.h). The consumer may only read them. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SCOPE_PREFIXES);
	__type(key, struct cgroup_key);
	__type(value, __u32);
} scope __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096 * 1024);
} samples __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} events __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} errors __weak SEC(".maps");

/* The executable ranges of each process (unwind_walk.h). The consumer may only read them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLES_DEFAULT);
	__type(key, __u32);
	__type(value, struct unwind_ranges);
} unwind_ranges __weak SEC(".maps");

/* The file mapped in each range of each process. The consumer writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TABLES_DEFAULT);
	__type(key, __u32);
	__type(value, struct unwind_process);
} unwind_process __weak SEC(".maps");

/* The mappings that the consumer asks `ranges` to add to a table. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_claims);
} unwind_claims __weak SEC(".maps");

/*
 * The processes with mappings that one pass of `vmas` lists, by process id. Used only on kernels
 * where the programs have to walk the mappings. Not preallocated, so it takes no memory on other
 * kernels.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ASKED_MAX);
	__type(key, __u32);
	__type(value, struct asked_process);
} asked __weak SEC(".maps");

/* Private: when an error kind was last reported on this CPU, and the number suppressed since. */
struct error_limit {
	__u64 sent_ns;
	__u32 suppressed;
	__u32 pad;
};

#define ERROR_KINDS 8

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ERROR_KINDS);
	__type(key, __u32);
	__type(value, struct error_limit);
} error_limits __weak SEC(".maps");

/* Returns the control words. NULL only for the verifier: element 0 of an array always exists. */
static __always_inline struct control *control_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline struct totals *totals_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&totals, &zero);
}

#define TOTALS_ADD(field, number)                      \
	do {                                           \
		struct totals *totals_ = totals_get(); \
                                                       \
		if (totals_)                           \
			totals_->field += (number);    \
	} while (0)

#define TOTALS_COUNT(field) TOTALS_ADD(field, 1)

#endif
