/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reclaim_abi.h: the part of the ABI (abi.h) that is about reclaim and dirty throttling. */
#ifndef TROCAR_SHARED_ABI_RECLAIM_ABI_H
#define TROCAR_SHARED_ABI_RECLAIM_ABI_H

#include "shared/abi/abi.h"

#define RECLAIM_OPEN_MAX 8192 /* stretches that are not over, at a time */
#define RECLAIM_SUMS_MAX 2048 /* sets of a cgroup, a kind and a disk */

/* What a stretch of time is: reclaim_kinds.def. */
enum reclaim_kind {
#define RECLAIM_KIND(id, json, help) RECLAIM_##id,
#include "shared/abi/reclaim_kinds.def"
#undef RECLAIM_KIND
	RECLAIM_KINDS_
};

/* Key of `reclaim_open`: a thread may be in one stretch of each kind. */
struct reclaim_open_key {
	__u32 tid;
	__u32 kind; /* enum reclaim_kind */
};

/* Value of `reclaim_open`: a stretch that has begun. */
struct reclaim_open {
	__u64 since_ns;
	__u64 cgroup_id; /* of the thread then; 0: outside of the loader's --scope */
	__u32 slot;	 /* of the nearest watch then; NO_SLOT: none */
	__u32 device; /* RECLAIM_THROTTLE: of the disk that is written to, as in struct reclaim_key
		       */
	__u32 asleep; /* 1: RECLAIM_THROTTLE, and the thread has left its CPU since */
	__u32 pad;
};

/* Key of `reclaim_sums`. */
struct reclaim_key {
	__u64 cgroup_id; /* as in struct reclaim_open, as the next two */
	__u32 slot;
	__u32 device; /* major << 20 | minor of RECLAIM_THROTTLE; 0: no disk, as that of NFS */
	__u32 kind;   /* enum reclaim_kind */
	__u32 pad;
};

/* Value of `reclaim_sums`: stretches that are over. Times in the steps of QUEUE_BUCKETS. */
struct reclaim_sums {
	__u64 count;
	__u64 time_ns;
	__u64 longest_ns;
	__u64 pages; /* that were reclaimed in them */
	/*
	 * Of no stretch that is known: ends without a seen begin, and the sum of the moments of
	 * these.
	 */
	__u64 orphans, orphan_ends_ns;
	__u32 steps[QUEUE_BUCKETS];
};

/* One element, per CPU, of `reclaim_losses` (LOSSES_OF): what found no room, of a watch and those
 * around it. */
struct slot_reclaim {
	__u64 untracked; /* stretches that are not in `reclaim_open` */
	__u64 unlisted;	 /* stretches that are not in `reclaim_sums` */
	__u64 awake; /* pauses for which the thread did not sleep, or not at once: not counted */
	__u64 no_memory; /* of untracked and unlisted: the table was not full (bpf/maps/table.h) */
};

#endif
