/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reclaim_abi.h: the part of the ABI (abi.h) that is about reclaim and dirty throttling. */
#ifndef TROCAR_SHARED_ABI_RECLAIM_ABI_H
#define TROCAR_SHARED_ABI_RECLAIM_ABI_H

#include "shared/abi/abi.h"

#define RECLAIM_OPEN_MAX 8192 /* pending intervals at a time */
#define RECLAIM_SUMS_MAX 2048 /* combinations of cgroup, kind and disk */

/* The kinds of intervals: reclaim_kinds.def. */
enum reclaim_kind {
#define RECLAIM_KIND(id, json, help) RECLAIM_##id,
#include "shared/abi/reclaim_kinds.def"
#undef RECLAIM_KIND
	RECLAIM_KINDS_
};

/* Key of `reclaim_open`: a thread may be in one interval of each kind. */
struct reclaim_open_key {
	__u32 tid;
	__u32 kind; /* enum reclaim_kind */
};

/* Value of `reclaim_open`: an interval that has begun. */
struct reclaim_open {
	__u64 since_ns;
	__u64 cgroup_id; /* of the thread at the begin; 0: outside the loader's --scope */
	__u32 slot;	 /* of the nearest watch at the begin; NO_SLOT: none */
	__u32 device;	 /* RECLAIM_THROTTLE: the disk written to, as in struct reclaim_key */
	__u32 asleep;	 /* RECLAIM_THROTTLE, 1: the thread has left its CPU since the begin */
	__u32 pad;
};

/* Key of `reclaim_sums`. */
struct reclaim_key {
	__u64 cgroup_id; /* this and the next two as in struct reclaim_open */
	__u32 slot;
	__u32 device; /* RECLAIM_THROTTLE: major << 20 | minor; 0: no disk, such as NFS */
	__u32 kind;   /* enum reclaim_kind */
	__u32 pad;
};

/* Value of `reclaim_sums`: completed intervals. Times are counted in the steps of QUEUE_BUCKETS. */
struct reclaim_sums {
	__u64 count;
	__u64 time_ns;
	__u64 longest_ns;
	__u64 pages; /* pages reclaimed in these intervals */
	/* Ends without a known begin, and the sum of the times of these ends. */
	__u64 orphans, orphan_ends_ns;
	__u32 steps[QUEUE_BUCKETS];
};

/*
 * One element, per CPU, of `reclaim_losses` (LOSSES_OF): the losses of a watch and of the watches
 * around it.
 */
struct slot_reclaim {
	__u64 untracked; /* intervals that did not fit into `reclaim_open` */
	__u64 unlisted;	 /* intervals that did not fit into `reclaim_sums` */
	__u64 awake;	 /* pauses without a sleep, or with a later sleep: not counted as pauses */
	__u64 no_memory; /* of untracked and unlisted: the table was not full (bpf/maps/table.h) */
};

#endif
