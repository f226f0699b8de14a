/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* block_abi.h: the part of the ABI (abi.h) that is about requests to disks. */
#ifndef TROCAR_SHARED_ABI_BLOCK_ABI_H
#define TROCAR_SHARED_ABI_BLOCK_ABI_H

#include "shared/abi/abi.h"

#define BLOCK_OPEN_MAX 16384 /* requests that are not over, at a time */
#define BLOCK_SUMS_MAX 4096  /* sets of a cgroup, a disk, an operation and a size */

/* What a request asks of a disk: block_ops.def. */
enum block_op {
#define BLOCK_OP(id, json, help) BLOCK_##id,
#include "shared/abi/block_ops.def"
#undef BLOCK_OP
	BLOCK_OPS_
};

/* Requests by size: element 0 has those up to 4 KiB, each next one four times as much. */
#define BLOCK_SIZES	 6
#define BLOCK_SIZE_SHIFT 12

enum block_flag {
	BLOCK_WRITEBACK = 1u << 0, /* a kernel thread asked, for the cgroup that wrote the pages */
};

/*
 * Value of `block_open`. The key is made from the address of the request's first bio, else of the
 * request, with a secret of the load (bpf/maps/hidden_address.h).
 */
struct block_request {
	__u64 cgroup_id; /* of the asking cgroup; 0: not known, or outside of the loader's --scope
			  */
	__u64 since_ns;	 /* when the request was made */
	__u64 issued_ns; /* when the disk got it; 0: it has not */
	__u32 slot;	 /* of the nearest watch; NO_SLOT: none */
	__u32 device;	 /* as in struct block_key */
	__u32 bytes;
	__u8 op;      /* enum block_op */
	__u8 flags;   /* enum block_flag */
	__u16 failed; /* 1: a part of it has ended with an error */
};

/* Key of `block_sums`. */
struct block_key {
	__u64 cgroup_id; /* 0: not known, or outside of the loader's --scope */
	__u32 slot;	 /* of the nearest watch as the request was made; NO_SLOT: none */
	__u32 device;	 /* number of the whole disk: major << 20 | minor */
	__u8 op;	 /* enum block_op */
	__u8 size;	 /* of a request, in BLOCK_SIZES */
	__u8 flags;	 /* enum block_flag */
	__u8 pad;
	__u32 pad2;
};

/* Value of `block_sums`: requests that are over. Times in the steps of QUEUE_BUCKETS. */
struct block_sums {
	__u64 requests, bytes;
	__u64 queue_ns;	  /* from made to issued: in the plug, in the scheduler, for a tag */
	__u64 service_ns; /* from issued to complete */
	__u64 longest_ns; /* of both together */
	__u64 errors;
	__u64 error_ns; /* of queue_ns and service_ns: of those with errors */
	__u64 merges;	/* bios and requests that became a part of another request */
	__u64 unissued; /* of `requests`: those that were met at their end alone */
	__u32 queue[QUEUE_BUCKETS], service[QUEUE_BUCKETS];
};

/*
 * The element of a slot's losses in `block_losses` and `reclaim_losses`. Element 0, that of
 * NO_SLOT, has the losses without a watch: it may have been anyone's, so every session puts it into
 * its ledger.
 */
#define LOSSES_OF(slot) ((slot) + 1u)

/* One element, per CPU, of `block_losses` (LOSSES_OF): what found no room, of a watch and those
 * around it. */
struct slot_block {
	__u64 untracked; /* requests that are not in `block_open`, or lost their place there */
	__u64 unlisted;	 /* requests that are not in `block_sums` */
	__u64 no_memory; /* of both: the table was not full (bpf/maps/table.h) */
	__u64 reused;	 /* of untracked: the kernel used the bio again, and reported no end */
};

#endif
