/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* account_abi.h: the part of the ABI (abi.h) that is about time accounts of threads. */
#ifndef TROCAR_SHARED_ABI_ACCOUNT_ABI_H
#define TROCAR_SHARED_ABI_ACCOUNT_ABI_H

#include "shared/abi/abi.h"

/* What a thread's time went to: account_parts.def. Rows are appended. */
enum account_part {
#define PART(id, json, help) ACCOUNT_##id,
#include "shared/abi/account_parts.def"
#undef PART
	ACCOUNT_PARTS_
};

/* Key of `accounts`. */
struct account_key {
	__u32 tid;
	__u32 ended; /* 0: the thread's own; else a number of its own, when a tid is used again */
};

enum account_flag {
	ACCOUNT_ENDED = 1u << 0, /* the thread has ended, or another account of it goes on */
	ACCOUNT_MOVED = 1u << 1, /* it went to another watch */
	ACCOUNT_LOST = 1u << 2,	 /* of a record: the table had no room for the thread */
};

/*
 * Value of `accounts`: the time account of one thread while it was in one watch. Whatever happens,
 * the sum of part_ns is since_ns - first_ns: a reader that finds another sum has read it while it
 * was written.
 */
struct time_account {
	__u64 first_ns;	 /* where it begins */
	__u64 since_ns;	 /* until when it is written: when the thread last left a CPU */
	__u64 waited_ns; /* sched_info.run_delay of the thread then */
	__u32 tgid;
	__u32 slot;  /* of the nearest watch */
	__u32 kind;  /* enum account_part: what the thread has waited for since */
	__u32 flags; /* enum account_flag */
	__u64 part_ns[ACCOUNT_PARTS_];
	__u64 longest_ns; /* the longest wait that is neither RUNNING nor QUEUE */
	__u32 longest_kind;
	__u32 pad;
	__u64 born_ns;	       /* of the thread, CLOCK_MONOTONIC (task_struct.start_time) */
	__u64 start_ns;	       /* of its process */
	char comm[COMM_BYTES]; /* of the thread, when it ended or was first met */
};

/* One element, per CPU, of `account_losses`. */
struct slot_accounts {
	__u64 ended; /* threads that ended, and for which there had been no room */
};

/* What `account_threads` writes: one record per thread of a watch that a session runs on. */
struct account_record {
	__u32 tid;
	__u32 pad;
	__u64 open_ns; /* of its time the part that is not over: the last in account */
	struct time_account account; /* until now */
};

#endif
