/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* account_abi.h: the part of the ABI (abi.h) that is about time accounts of threads. */
#ifndef TROCAR_SHARED_ABI_ACCOUNT_ABI_H
#define TROCAR_SHARED_ABI_ACCOUNT_ABI_H

#include "shared/abi/abi.h"

/* The uses of a thread's time: account_parts.def. Rows are appended. */
enum account_part {
#define PART(id, json, help) ACCOUNT_##id,
#include "shared/abi/account_parts.def"
#undef PART
	ACCOUNT_PARTS_
};

/* Key of `accounts`. */
struct account_key {
	__u32 tid;
	__u32 ended; /* 0: the thread's current account; else a unique number: tids are reused */
};

enum account_flag {
	ACCOUNT_ENDED = 1u << 0, /* the thread has ended, or another account of it continues */
	ACCOUNT_MOVED = 1u << 1, /* the thread moved to another watch */
	ACCOUNT_LOST = 1u << 2,	 /* of a record: the table was full for the thread */
	ACCOUNT_SHORT = 1u << 3, /* with ACCOUNT_LOST: the table was not full (bpf/maps/table.h) */
};

/*
 * Value of `accounts`: the time account of one thread while it was in one watch. The sum of part_ns
 * is always since_ns - first_ns: a reader that finds another sum has read the account during a
 * write.
 */
struct time_account {
	__u64 first_ns;	 /* begin of the account */
	__u64 since_ns;	 /* end of the account so far: when the thread last left a CPU */
	__u64 waited_ns; /* sched_info.run_delay of the thread at since_ns */
	__u32 tgid;
	__u32 slot;		       /* of the nearest watch */
	__u32 kind;		       /* enum account_part: the kind of wait since since_ns */
	__u32 flags;		       /* enum account_flag */
	struct slot_switches switches; /* how often the thread left a CPU */
	__u64 part_ns[ACCOUNT_PARTS_];
	__u64 longest_ns; /* longest wait, RUNNING and QUEUE excluded */
	__u32 longest_kind;
	__u32 call;	/* number of the system call in which it waits, or enum account_call */
	__u64 born_ns;	/* of the thread, CLOCK_MONOTONIC (task_struct.start_time) */
	__u64 start_ns; /* of its process */
	char comm[COMM_BYTES]; /* of the thread, when it ended or was first met */
};

/*
 * Values of time_account.call for a thread that does not wait in a system call with a number of
 * this machine, and of sample.call for a thread that does not run in one.
 */
enum account_call {
	/* user mode; a page fault, an interrupt, a signal that stops it */
	ACCOUNT_CALL_NONE = 0xffffffffu,
	ACCOUNT_CALL_KERNEL = 0xfffffffeu, /* a kernel thread, or a worker of io_uring or vhost */
	ACCOUNT_CALL_COMPAT = 0xfffffffdu, /* a process of 32 bits */
};

/* The users of the CPU while a thread waited for it: queue_behind.def. Rows are appended. */
enum queue_behind {
#define BEHIND(id, json, help) QUEUE_##id,
#include "shared/abi/queue_behind.def"
#undef BEHIND
	QUEUE_BEHIND_
};

/* The waits of a thread for a CPU. One count is one wait, from runnable to running. */
struct thread_queue {
	__u64 longest_ns;
	__u64 longest_end_ns; /* when that wait was over */
	__u64 behind_ns[QUEUE_BEHIND_];
	__u32 waits[QUEUE_BUCKETS];
};

/*
 * Marks of a thread that was woken together with other waiters of one lock. They show whether the
 * thread's next wait is for that lock again, without the thread having had the lock. Times are in
 * units of 1024 ns, modulo 2^32. Written at wake-ups (lock.bpf.c).
 */
struct thread_herd {
	__u32 lock;	/* hash of the lock; 0: the thread was not woken in this way */
	__u32 switches; /* number of waits of the thread until then */
	__u32 running;	/* time_account.part_ns[ACCOUNT_RUNNING] then */
	__u32 woken;	/* time of that wake-up */
};

/* Value of `accounts`. */
struct thread_times {
	struct time_account account;
	struct thread_queue queue;
	struct thread_herd herd;
};

#define ACCOUNTS_NEAR	   128
#define ACCOUNTS_NEAR_FROM 1024 /* `accounts_near` is not used if `accounts` has fewer elements */

/* Bit of near_account.owner, next to the thread's tid: the account can be read. */
#define ACCOUNT_NEAR_READY (1ull << 32)

/*
 * Element of `accounts_near`, an array cache in front of `accounts`. Its index is a tid modulo
 * ACCOUNTS_NEAR: the first thread with that index has its account there until the account is
 * removed.
 */
struct near_account {
	__u64 owner; /* 0: free. The kernel side takes free elements, the consumer may free all */
	struct thread_times times;
};

/* Key of `queue_neighbours`: threads of the watch waited for a CPU while the cgroup used it. */
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
	__u64 waits, wait_ns; /* ended waits */
	__u64 longest_ns;
	__u64 longest_end_ns;
	__u32 longest_tid;
	__u32 longest_tgid;
	char longest_comm[COMM_BYTES];
	__u32 buckets[QUEUE_BUCKETS]; /* of `waits` */
};

/* One element, per CPU, of `account_losses`. */
struct slot_accounts {
	__u64 ended;	  /* ended threads without an account, because the table was full */
	__u64 unqueued;	  /* how often a thread without an account left a CPU */
	__u64 calls_full; /* waits in system calls that did not fit into `account_calls` */
	__u64 calls_full_ns;
	/* Parts of unqueued, ended and calls_full: the table was not full (bpf/maps/table.h). */
	__u64 no_memory, ended_no_memory, calls_no_memory;
};

struct account_head {
	__u32 tid;
	__u32 pad;
	__u64 open_ns;		     /* the unfinished last part of the time in `account` */
	__u64 open_wait_ns;	     /* part of open_ns: the wait in account.call */
	struct time_account account; /* up to the time of the read */
};

/*
 * What `account_threads` writes: one record per thread of a watch with a running session. As
 * `tasks` does, it writes ACCOUNTS_AT_ONCE empty records after each ACCOUNTS_PAUSE tasks, which end
 * a read of ACCOUNTS_READ_BYTES.
 */
struct account_record {
	struct account_head head;
	struct thread_queue queue; /* of ended waits */
};

#define ACCOUNTS_PAUSE	    1024
#define ACCOUNTS_AT_ONCE    8
#define ACCOUNTS_READ_BYTES (ACCOUNTS_AT_ONCE * sizeof(struct account_record))

#endif
