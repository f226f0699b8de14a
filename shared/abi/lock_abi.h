/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lock_abi.h: the part of the ABI (abi.h) that is about waits for locks. */
#ifndef TROCAR_SHARED_ABI_LOCK_ABI_H
#define TROCAR_SHARED_ABI_LOCK_ABI_H

#include "shared/abi/abi.h"

#define LOCKS_DEFAULT	  4096	     /* locks that threads waited for, at a time */
#define LOCK_WAKERS	  4096	     /* pairs of a lock and a waker of long waits for it */
#define LOCK_LONG_NS	  1000000ull /* a wait of this length is reported with its waker */
#define LOCK_THREAD_WORDS 8	     /* of 64 bits */
#define LOCK_REIGNS	  8	     /* of those that released a lock last */

/* What a thread waits for: lock_kinds.def. */
enum lock_kind {
#define LOCK(id, json, help) LOCK_##id,
#include "shared/abi/lock_kinds.def"
#undef LOCK
	LOCK_KINDS_
};

/* What a lock lies in: lock_memory.def. */
enum lock_memory_kind {
#define LOCK_MEMORY(id, json, say) LOCK_MEMORY_##id,
#include "shared/abi/lock_memory.def"
#undef LOCK_MEMORY
	LOCK_MEMORY_KINDS_
};

#define LOCK_NAME_BYTES 32

/*
 * What a lock lay in as it was first met. ANONYMOUS is memory without a file, and also the .bss of
 * a module; FILE a mapped file, and also the data of a module; SHARED memory that processes share
 * and that the kernel keeps as a file. What the kind does not have is 0.
 */
struct lock_memory {
	__u64 offset; /* in the file or shared memory; in the heap from where that begins */
	__u64 inode;
	__u32 kind; /* enum lock_memory_kind */
	__u32 tid;  /* the thread of the stack */
	/*
	 * The last part of the path of FILE, cut; of SHARED likewise, or "memfd:NAME", "SYSV" with
	 * the key in hex, "dev/zero"; of ANONYMOUS the process's own name for it (PR_SET_VMA).
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

#define LOCK_BUCKETS 56 /* of the bounds of QUEUE_BUCKETS: up to 137 s, then longer ones */

/*
 * Threads are woken together where one thread wakes several of a lock in one system call, each
 * within so much of the one before. One of them waits again without having had the lock where its
 * next wait is for that lock, after at most this time on a CPU, and it has woken no thread there in
 * between.
 */
#define LOCK_HERD_NS	100000ull
#define LOCK_HERD_SHIFT 10 /* of the times in struct thread_herd */

/* For a time one thread, and no other, woke those that waited: it had the lock. */
struct lock_reign {
	__u64 since_ns;	 /* when another one last woke a thread; 0: none did */
	__u32 tid, tgid; /* 0: outside of the loader's --scope */
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
	__u32 again;	   /* waits of threads that had been woken together, and did not get it */
	__u64 woken_ns;	   /* when a thread last woke another one */
	__u64 waker_slept; /* how often that thread had gone to sleep before */
	__u64 next_reign;  /* number of the next of `reigns`, modulo LOCK_REIGNS */
	struct lock_reign reigns[LOCK_REIGNS];
	char longest_comm[COMM_BYTES]; /* of the thread that waited the longest */
	char comm[COMM_BYTES];	       /* of the first thread of the process */
	struct lock_memory memory;
};

/* Who ended a wait. */
enum lock_waker_kind {
	LOCK_WAKER_THREAD,    /* the thread that ran there */
	LOCK_WAKER_INTERRUPT, /* a timer or a device: the time was up, or the net has an answer */
	LOCK_WAKER_SIGNAL,    /* a signal for the thread that waited */
	LOCK_WAKER_KINDS_
};

/* Key of `lock_wakers`. */
struct lock_waker_key {
	struct lock_key lock;
	__u32 kind; /* enum lock_waker_kind */
	__u32 tid;  /* of LOCK_WAKER_THREAD, else 0 */
};

/*
 * Value of `lock_wakers`: what one thread had to do with the long waits for one lock. A lock goes
 * from thread to thread: a thread that waits for a contended lock is woken by the last holder, and
 * has waited for all.
 */
struct lock_waker {
	__u64 waits;	  /* that it ended */
	__u64 held_ns;	  /* of all waits the time in which it was the next waker */
	__u64 pending_ns; /* of held_ns, since its stack was taken last */
	__u64 stacked_ns; /* when that was */
	__u32 tgid;
	__u32 pad;
	char comm[COMM_BYTES];
};

/* The stack of one thread at one lock is taken at most once in this time. */
#define LOCK_STACK_EVERY_NS 10000000ull

/*
 * Follows the frames of a sample with SAMPLE_WAKER: the stack of a thread as it woke one that had
 * waited for a lock for LOCK_LONG_NS and more. sample.slot is that of the waiter's watch.
 */
struct sample_waker {
	__u64 weight_ns; /* for how much of held_ns it stands */
	struct lock_key lock;
};

/* One element, per CPU, of `lock_losses`: what found no room, of a watch and those around it. */
struct slot_locks {
	__u64 waits;  /* for locks that are not in `locks` */
	__u64 wakers; /* long waits with a waker that is not in `lock_wakers` */
	/* Stacks of wakers: taken, and of these without room in the ring, and without a frame. */
	__u64 stacks, ring_full, no_frame;
	__u64 long_waits,
		long_wait_ns; /* long waits that are not in `long_waits`, and their time */
	/* Of waits and of long_waits: the table was not full (bpf/maps/table.h). */
	__u64 no_memory, long_no_memory;
};

/* What `lock_waits` writes: one record per thread that waits for a lock now. */
struct lock_record {
	struct lock_key lock;
	__u64 since_ns; /* since when it waits, or has been known */
	__u64 now_ns;
	__u64 start_ns; /* of the process */
	__u32 tid;
	__u32 pad;
	char comm[COMM_BYTES]; /* of the first thread of the process */
	char thread_comm[COMM_BYTES];
	struct lock_memory memory;
};

#endif
