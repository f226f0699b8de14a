/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lock_abi.h: the part of the ABI (abi.h) that is about waits for locks. */
#ifndef TROCAR_SHARED_ABI_LOCK_ABI_H
#define TROCAR_SHARED_ABI_LOCK_ABI_H

#include "shared/abi/abi.h"

#define LOCKS_DEFAULT	  4096	     /* locks that threads waited for, at a time */
#define LOCK_WAKERS	  4096	     /* pairs of a lock and a thread that ended long waits for it */
#define LOCK_LONG_NS	  1000000ull /* a wait of this length is reported with its waker */
#define LOCK_THREAD_WORDS 8	     /* of 64 bits */
#define LOCK_REIGNS	  8	     /* the last reigns of a lock that are kept */

/* The kinds of locks: lock_kinds.def. */
enum lock_kind {
#define LOCK(id, json, help) LOCK_##id,
#include "shared/abi/lock_kinds.def"
#undef LOCK
	LOCK_KINDS_
};

/* The kinds of memory that contain a lock: lock_memory.def. */
enum lock_memory_kind {
#define LOCK_MEMORY(id, json, say) LOCK_MEMORY_##id,
#include "shared/abi/lock_memory.def"
#undef LOCK_MEMORY
	LOCK_MEMORY_KINDS_
};

#define LOCK_NAME_BYTES 32

/*
 * The memory that contained a lock when the lock was first seen. ANONYMOUS is memory without a
 * file, and also the .bss of a module; FILE is a mapped file, and also the data of a module; SHARED
 * is memory that processes share and that the kernel keeps as a file. Members that the kind does
 * not have are 0.
 */
struct lock_memory {
	__u64 offset; /* in the file or shared memory; or from the begin of the heap */
	__u64 inode;
	__u32 kind; /* enum lock_memory_kind */
	__u32 tid;  /* the thread of the stack */
	/*
	 * FILE: the last component of the path, cut. SHARED: the last component of the path, cut,
	 * or "memfd:NAME", "SYSV" with the key in hex, "dev/zero". ANONYMOUS: the name that the
	 * process gave it (PR_SET_VMA).
	 */
	char name[LOCK_NAME_BYTES];
};

/* Key of `locks`. */
struct lock_key {
	__u64 address; /* of the futex, in the process's memory; 0: the kind has none */
	__u32 tgid;
	__u32 slot; /* of the nearest watch */
	__u32 kind; /* enum lock_kind */
	__u32 pad;
};

#define LOCK_BUCKETS 56 /* with the bounds of QUEUE_BUCKETS: up to 137 s, then longer waits */

/*
 * Threads are woken together if one thread wakes several waiters of a lock in one system call, each
 * within LOCK_HERD_NS of the one before. A woken thread waits again without having had the lock if
 * its next wait is for that lock, after at most LOCK_HERD_NS on a CPU, and it has woken no waiter
 * of that lock in between.
 */
#define LOCK_HERD_NS	100000ull
#define LOCK_HERD_SHIFT 10 /* of the times in struct thread_herd */

/* An interval in which one thread alone woke the waiters: that thread had the lock. */
struct lock_reign {
	__u64 since_ns;	 /* when another thread last woke a waiter; 0: none did */
	__u32 tid, tgid; /* 0: outside the loader's --scope */
	char comm[COMM_BYTES];
};

/* Value of `locks`: the waits for one lock that have ended. */
struct lock_sums {
	__u64 waits, total_ns;
	__u64 longest_ns;
	__u64 start_ns; /* of the process */
	/* Bit tid % 512 of each thread that waited: threads of a process have tids close together.
	 */
	__u64 threads[LOCK_THREAD_WORDS];
	__u32 buckets[LOCK_BUCKETS];
	__u32 longest_tid;
	__u32 again;	   /* waits of threads that were woken together and did not get it */
	__u64 woken_ns;	   /* when a thread last woke a waiter */
	__u64 waker_slept; /* how often that waker had slept until then */
	__u64 next_reign;  /* number of the next of `reigns`, modulo LOCK_REIGNS */
	struct lock_reign reigns[LOCK_REIGNS];
	char longest_comm[COMM_BYTES]; /* of the thread that waited the longest */
	char comm[COMM_BYTES];	       /* of the first thread of the process */
	struct lock_memory memory;
};

/* The waker of a waiting thread. */
enum lock_waker_kind {
	LOCK_WAKER_THREAD,    /* the thread that ran on the waking CPU */
	LOCK_WAKER_INTERRUPT, /* a timer or a device: a timeout, or data from the network */
	LOCK_WAKER_SIGNAL,    /* a signal for the waiting thread */
	LOCK_WAKER_KINDS_
};

/* Key of `lock_wakers`. */
struct lock_waker_key {
	struct lock_key lock;
	__u32 kind; /* enum lock_waker_kind */
	__u32 tid;  /* of LOCK_WAKER_THREAD, else 0 */
};

/*
 * Value of `lock_wakers`: the part of one thread in the long waits for one lock. A lock passes from
 * thread to thread: the last holder wakes the waiter, but the waiter has waited for all holders.
 */
struct lock_waker {
	__u64 waits;	  /* waits that the thread ended */
	__u64 held_ns;	  /* time of all waits in which the thread was the next waker */
	__u64 pending_ns; /* part of held_ns since its stack was last taken */
	__u64 stacked_ns; /* when its stack was last taken */
	__u32 tgid;
	__u32 pad;
	char comm[COMM_BYTES];
};

/* The stack of one thread at one lock is taken at most once in this time. */
#define LOCK_STACK_EVERY_NS 10000000ull

/*
 * Follows the frames of a sample with SAMPLE_WAKER: the stack of a thread that wakes a thread after
 * a lock wait of LOCK_LONG_NS or more. sample.slot is that of the waiter's watch.
 */
struct sample_waker {
	__u64 weight_ns; /* the part of held_ns that the stack stands for */
	struct lock_key lock;
};

/* One element, per CPU, of `lock_losses`: the losses of a watch and of the watches around it. */
struct slot_locks {
	__u64 waits;  /* waits for locks that did not fit into `locks` */
	__u64 wakers; /* long waits with a waker that did not fit into `lock_wakers` */
	/* Stacks of wakers: all; those that did not fit into the ring; those without a frame. */
	__u64 stacks, ring_full, no_frame;
	__u64 long_waits,
		long_wait_ns; /* long waits that did not fit into `long_waits`, and their time */
	/* Parts of waits and long_waits: the table was not full (bpf/maps/table.h). */
	__u64 no_memory, long_no_memory;
};

/* What `lock_waits` writes: one record per thread that currently waits for a lock. */
struct lock_record {
	struct lock_key lock;
	__u64 since_ns; /* since when the thread waits, or is known */
	__u64 now_ns;
	__u64 start_ns; /* of the process */
	__u32 tid;
	__u32 pad;
	char comm[COMM_BYTES]; /* of the first thread of the process */
	char thread_comm[COMM_BYTES];
	struct lock_memory memory;
};

#endif
