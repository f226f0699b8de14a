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

#include "bpf/maps/map_macros.h"
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

__weak MAP(ARRAY, abi, __u32, struct abi_header, 1);
__weak MAP_FLAGS(ARRAY, BPF_F_MMAPABLE, control, __u32, struct control, 1);
__weak MAP_FLAGS(ARRAY, BPF_F_MMAPABLE, slots, __u32, struct slot, SLOTS_DEFAULT);
__weak MAP(PERCPU_ARRAY, counters, __u32, struct slot_counters, SLOTS_DEFAULT);
__weak MAP(PERCPU_ARRAY, switches, __u32, struct slot_switches, SLOTS_DEFAULT);

/* No program uses it: the broker counts in it and the consumer reads it. */
__weak MAP_FLAGS(ARRAY, BPF_F_MMAPABLE, broker, __u32, struct broker_counts, 1);

__weak MAP(PERCPU_ARRAY, totals, __u32, struct totals, 1);

/*
 * Preallocated: the sampler reads it in interrupt context, and a miss must cost no more than one
 * bucket.
 */
__weak MAP(HASH, watches, __u64, struct watch_entry, (SLOTS_DEFAULT * WATCH_ENTRIES));

/* Preallocated: the sampler inserts in interrupt context. */
__weak MAP(HASH, targets, struct process_key, struct target, TARGETS_DEFAULT);

__weak MAP_FLAGS(LPM_TRIE, BPF_F_NO_PREALLOC, rules_a, struct comm_key, struct rule_value,
		 RULES_DEFAULT);
__weak __typeof__(rules_a) rules_b SEC(".maps");
__weak MAP_FLAGS(LPM_TRIE, BPF_F_NO_PREALLOC, cgroups_a, struct cgroup_key, struct rule_value,
		 RULES_DEFAULT);
__weak __typeof__(cgroups_a) cgroups_b SEC(".maps");

/* The cgroup prefixes of the loader's --scope (scope.h). The consumer may only read them. */
__weak MAP_FLAGS(LPM_TRIE, BPF_F_NO_PREALLOC, scope, struct cgroup_key, __u32, SCOPE_PREFIXES);

__weak RING_MAP(samples, 4096 * 1024);
__weak RING_MAP(events, 256 * 1024);
__weak RING_MAP(errors, 64 * 1024);

/* The executable ranges of each process (unwind_walk.h). The consumer may only read them. */
__weak MAP(ARRAY, unwind_ranges, __u32, struct unwind_ranges, TABLES_DEFAULT);

/* The file mapped in each range of each process. The consumer writes it. */
__weak MAP_FLAGS(ARRAY, BPF_F_MMAPABLE, unwind_process, __u32, struct unwind_process,
		 TABLES_DEFAULT);

/* The mappings that the consumer asks `ranges` to add to a table. */
__weak MAP_FLAGS(ARRAY, BPF_F_MMAPABLE, unwind_claims, __u32, struct unwind_claims, 1);

/*
 * The processes with mappings that one pass of `vmas` lists, by process id. Used only on kernels
 * where the programs have to walk the mappings. Not preallocated, so it takes no memory on other
 * kernels.
 */
__weak MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, asked, __u32, struct asked_process, ASKED_MAX);

/* Private: when an error kind was last reported on this CPU, and the number suppressed since. */
struct error_limit {
	__u64 sent_ns;
	__u32 suppressed;
	__u32 pad;
};

#define ERROR_KINDS 8

__weak MAP(PERCPU_ARRAY, error_limits, __u32, struct error_limit, ERROR_KINDS);

/* Returns the control words. NULL only for the verifier: element 0 of an array always exists. */
static __always_inline struct control *control_get(void)
{
	return map_single(&control);
}

static __always_inline struct totals *totals_get(void)
{
	return map_single(&totals);
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
