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
	ACCOUNT_SHORT = 1u << 3, /* of such a record: the table was not full (bpf/maps/table.h) */
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
	__u32 slot;		       /* of the nearest watch */
	__u32 kind;		       /* enum account_part: what the thread has waited for since */
	__u32 flags;		       /* enum account_flag */
	struct slot_switches switches; /* how often it left a CPU */
	__u64 part_ns[ACCOUNT_PARTS_];
	__u64 longest_ns; /* the longest wait that is neither RUNNING nor QUEUE */
	__u32 longest_kind;
	__u32 call;	/* number of the system call that it waits in, or enum account_call */
	__u64 born_ns;	/* of the thread, CLOCK_MONOTONIC (task_struct.start_time) */
	__u64 start_ns; /* of its process */
	char comm[COMM_BYTES]; /* of the thread, when it ended or was first met */
};

/*
 * Of a thread that waits in no system call with a number of this machine (time_account.call), or
 * runs in none (sample.call).
 */
enum account_call {
	/* user mode; a page fault, an interrupt, a signal that stops it */
	ACCOUNT_CALL_NONE = 0xffffffffu,
	ACCOUNT_CALL_KERNEL = 0xfffffffeu, /* a kernel thread, or a worker of io_uring or vhost */
	ACCOUNT_CALL_COMPAT = 0xfffffffdu, /* a process of 32 bits */
};

/* Who had the CPU while a thread waited for it: queue_behind.def. Rows are appended. */
enum queue_behind {
#define BEHIND(id, json, help) QUEUE_##id,
#include "shared/abi/queue_behind.def"
#undef BEHIND
	QUEUE_BEHIND_
};

/* How a thread waited for a CPU. One count is one wait, from runnable to running. */
struct thread_queue {
	__u64 longest_ns;
	__u64 longest_end_ns; /* when that wait was over */
	__u64 behind_ns[QUEUE_BEHIND_];
	__u32 waits[QUEUE_BUCKETS];
};

/*
 * Of a thread that was woken together with others that waited for the same lock: the marks that
 * show whether its next wait is for that lock again, without it having had the lock. Times are in
 * units of 1024 ns, modulo 2^32. Written at wake-ups (lock.bpf.c).
 */
struct thread_herd {
	__u32 lock;	/* hash of the lock; 0: it was not woken so */
	__u32 switches; /* how many waits it had had then */
	__u32 running;	/* time_account.part_ns[ACCOUNT_RUNNING] then */
	__u32 woken;	/* when that was */
};

/* Value of `accounts`. */
struct thread_times {
	struct time_account account;
	struct thread_queue queue;
	struct thread_herd herd;
};

#define ACCOUNTS_NEAR	   128
#define ACCOUNTS_NEAR_FROM 1024 /* with fewer elements in `accounts` it is not used */

/* near_account.owner: beside the thread's tid, that its account can be read. */
#define ACCOUNT_NEAR_READY (1ull << 32)

/*
 * Element of `accounts_near`, which stands before `accounts`: the thread that comes first to the
 * element of its tid, modulo ACCOUNTS_NEAR, has its account there until it is removed.
 */
struct near_account {
	__u64 owner; /* 0: of no thread. The kernel side takes free ones, the consumer may free all
		      */
	struct thread_times times;
};

/* Key of `queue_neighbours`: threads of the watch waited for a CPU that the cgroup had. */
struct queue_neighbour {
	__u64 cgroup_id;
	__u32 slot;
	__u32 pad; /* 0 */
};

/* Key of `account_calls`: a system call in which threads of the watch waited. */
struct account_call_key {
	__u32 slot; /* of the nearest watch */
	__u32 call; /* its number, or enum account_call */
};

/* One element, per CPU, of `account_calls`. */
struct call_waits {
	__u64 waits, wait_ns; /* that are over */
	__u64 longest_ns;
	__u64 longest_end_ns;
	__u32 longest_tid;
	__u32 longest_tgid;
	char longest_comm[COMM_BYTES];
	__u32 buckets[QUEUE_BUCKETS]; /* of `waits` */
};

/* One element, per CPU, of `account_losses`. */
struct slot_accounts {
	__u64 ended;	  /* threads that ended, and for which there had been no room */
	__u64 unqueued;	  /* times that a thread without an account left a CPU */
	__u64 calls_full; /* waits in system calls that found no room in `account_calls` */
	__u64 calls_full_ns;
	/* Of unqueued, ended and calls_full: the table was not full (bpf/maps/table.h). */
	__u64 no_memory, ended_no_memory, calls_no_memory;
};

struct account_head {
	__u32 tid;
	__u32 pad;
	__u64 open_ns;	    /* of its time the part that is not over: the last in account */
	__u64 open_wait_ns; /* of that the wait in account.call */
	struct time_account account; /* until now */
};

/*
 * What `account_threads` writes: one record per thread of a watch that a session runs on. As with
 * `tasks`, after each ACCOUNTS_PAUSE tasks come ACCOUNTS_AT_ONCE empty records, which end a read of
 * ACCOUNTS_READ_BYTES.
 */
struct account_record {
	struct account_head head;
	struct thread_queue queue; /* of the waits that are over */
};

#define ACCOUNTS_PAUSE	    1024
#define ACCOUNTS_AT_ONCE    8
#define ACCOUNTS_READ_BYTES (ACCOUNTS_AT_ONCE * sizeof(struct account_record))

#endif
