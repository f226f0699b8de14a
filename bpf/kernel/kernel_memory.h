/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_memory.h: the structures of memory management that the programs read, declared as in
 * kernel.h. Sources:
 * include/linux/{memcontrol,page_counter,mm_types,mm_types_task,percpu_counter,cgroup-defs,
 * sched/signal,backing-dev-defs,device}.h of Linux 6.1 to 7.3.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_MEMORY_H
#define TROCAR_BPF_KERNEL_KERNEL_MEMORY_H

#include "bpf/kernel/kernel.h"

/* Indexes of the rss_stat counters: file pages, anonymous pages, pages in swap, tmpfs pages. */
#define MM_FILEPAGES  0
#define MM_ANONPAGES  1
#define MM_SWAPENTS   2
#define MM_SHMEMPAGES 3

enum cgroup_subsys_id {
	memory_cgrp_id = 4, /* another value if other controllers are built in */
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	__s64 counter;
} atomic64_t;

typedef atomic64_t atomic_long_t;

struct page_counter {
	atomic_long_t usage;
	unsigned long max;
};

struct mem_cgroup {
	struct cgroup_subsys_state css; /* the first member in the kernel too */
	struct page_counter memory;
	bool oom_lock; /* only with CONFIG_MEMCG_V1, since 6.11 */
};

struct css_set___memory {
	struct cgroup_subsys_state *subsys[1]; /* indexed by enum cgroup_subsys_id */
};

/* Linux 6.1. */
struct mm_rss_stat {
	atomic_long_t count[4];
};

struct mm_struct___counted {
	struct mm_rss_stat rss_stat;
};

struct percpu_counter {
	__s64 count; /* without the CPUs' pending additions */
};

/* Linux 6.2 and newer. */
struct mm_struct___percpu {
	struct percpu_counter rss_stat[4];
};

struct signal_struct___oom {
	short oom_score_adj;
};

struct device {
	__u32 devt;
};

struct backing_dev_info {
	struct device *owner; /* the disk; NULL if there is none */
};

struct bdi_writeback {
	struct backing_dev_info *bdi;
};

#pragma clang attribute pop

#endif
