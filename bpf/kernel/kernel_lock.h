/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_lock.h: the structures of kernel locks and file locks, declared as in kernel.h. Read them
 * with BPF_CORE_READ only. Sources: include/linux/{rwsem,filelock,fs,mm_types}.h and
 * kernel/locking/rwsem.c of Linux 6.1 to 7.2.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_LOCK_H
#define TROCAR_BPF_KERNEL_KERNEL_LOCK_H

#include "bpf/kernel/kernel.h"

/*
 * Low bits of rw_semaphore.owner: readers hold it, and two flags. The rest is the task that holds
 * it for writing, or the last reader.
 */
#define RWSEM_BY_READERS 1ull
#define RWSEM_FLAGS	 7ull

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	long counter;
} atomic_long_t___lock;

struct rw_semaphore {
	atomic_long_t___lock owner;
	struct list_head wait_list;
};

struct rwsem_waiter {
	struct list_head list;
	struct task_struct *task;
};

struct mm_struct___lock {
	struct rw_semaphore mmap_lock;
};

/* Since 6.9. */
struct file_lock_core {
	struct list_head flc_list;
	struct list_head flc_blocked_requests;
	int flc_pid;
	struct file *flc_file; /* the lock was taken through it */
};

/* Before 6.9. */
struct file_lock___whole {
	struct list_head fl_list;
	struct list_head fl_blocked_requests;
	unsigned int fl_pid;
	struct file *fl_file;
};

struct file_lock_context {
	struct list_head flc_flock, flc_posix;
};

struct inode___lock {
	struct rw_semaphore i_rwsem;
	struct file_lock_context *i_flctx;
};

#pragma clang attribute pop

#endif
