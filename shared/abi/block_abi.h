/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* block_abi.h: the part of the ABI (abi.h) that is about requests to disks. */
#ifndef TROCAR_SHARED_ABI_BLOCK_ABI_H
#define TROCAR_SHARED_ABI_BLOCK_ABI_H

#include "shared/abi/abi.h"

#define BLOCK_OPEN_MAX 16384 /* pending requests at a time */
#define BLOCK_SUMS_MAX 4096  /* combinations of cgroup, disk, operation and size */

/* The operation of a disk request: block_ops.def. */
enum block_op {
#define BLOCK_OP(id, json, help) BLOCK_##id,
#include "shared/abi/block_ops.def"
#undef BLOCK_OP
	BLOCK_OPS_
};

/*
 * Requests by size: element 0 counts sizes up to 4 KiB, each next element up to four times the
 * size.
 */
#define BLOCK_SIZES	 6
#define BLOCK_SIZE_SHIFT 12

enum block_flag {
	BLOCK_WRITEBACK = 1u << 0, /* a kernel thread made it for the cgroup that wrote the pages */
};

/*
 * Value of `block_open`. The key is the address of the request's first bio, else of the request,
 * hidden by a secret of the load (bpf/maps/hidden_address.h).
 */
struct block_request {
	__u64 cgroup_id; /* requesting cgroup; 0: not known, or outside the loader's --scope */
	__u64 since_ns;	 /* when the request was made */
	__u64 issued_ns; /* when it was issued to the disk; 0: not yet */
	__u32 slot;	 /* of the nearest watch; NO_SLOT: none */
	__u32 device;	 /* as in struct block_key */
	__u32 bytes;
	__u8 op;      /* enum block_op */
	__u8 flags;   /* enum block_flag */
	__u16 failed; /* 1: a part of it ended with an error */
};

/* Key of `block_sums`. */
struct block_key {
	__u64 cgroup_id; /* 0: not known, or outside the loader's --scope */
	__u32 slot;	 /* of the nearest watch when the request was made; NO_SLOT: none */
	__u32 device;	 /* number of the whole disk: major << 20 | minor */
	__u8 op;	 /* enum block_op */
	__u8 size;	 /* size of a request, as an index below BLOCK_SIZES */
	__u8 flags;	 /* enum block_flag */
	__u8 pad;
	__u32 pad2;
};

/* Value of `block_sums`: completed requests. Times are counted in the steps of QUEUE_BUCKETS. */
struct block_sums {
	__u64 requests, bytes;
	__u64 queue_ns;	  /* from creation to issue: in the plug, in the scheduler, for a tag */
	__u64 service_ns; /* from issue to completion */
	__u64 longest_ns; /* longest time of queue and service together */
	__u64 errors;
	__u64 error_ns; /* part of queue_ns and service_ns: requests with errors */
	__u64 merges;	/* bios and requests that were merged into another request */
	__u64 unissued; /* part of `requests`: requests of which only the end was seen */
	__u32 queue[QUEUE_BUCKETS], service[QUEUE_BUCKETS];
};

/*
 * Index of a slot's element in `block_losses` and `reclaim_losses`. Element 0, for NO_SLOT, counts
 * the losses without a watch: they may belong to any watch, so every session adds them to its
 * ledger.
 */
#define LOSSES_OF(slot) ((slot) + 1u)

/*
 * One element, per CPU, of `block_losses` (LOSSES_OF): the losses of a watch and of the watches
 * around it.
 */
struct slot_block {
	__u64 untracked; /* requests that did not fit into `block_open`, or lost their place */
	__u64 unlisted;	 /* requests that did not fit into `block_sums` */
	__u64 no_memory; /* part of both: the table was not full (bpf/maps/table.h) */
	__u64 reused;	 /* part of untracked: the kernel reused the bio and reported no end */
};

#endif
