/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_lock.h: the lock that a thread waits for, and the thread or process that holds it.
 *
 * A futex is classified by the operation and the expected value that the thread passed to futex(2),
 * and by the words at the address that it passed. They are user memory: any process can write any
 * value there. So a word counts as a holder only if it is the number of a thread of the same
 * process, and nothing else of these words leaves the kernel. A process can lie about its own locks
 * only. Sources: glibc 2.31 to 2.41 (nptl/lowlevellock.c, sysdeps/nptl/bits/struct_mutex.h and
 * struct_rwlock.h), musl 1.2 (src/thread/pthread_mutex_timedlock.c), futex(2).
 *
 * Kernel locks have an owner word and a list of waiters. The sampled thread counts as a waiter only
 * if it is in that list.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_LOCK_H
#define TROCAR_BPF_WAITS_LOOK_LOCK_H

#include <asm/unistd.h>
#include <linux/futex.h>

#include "bpf/kernel/kernel_lock.h"
#include "bpf/maps/hidden_address.h"
#include "bpf/waits/look_thread.h"
#include "bpf/watch/scope.h"

/* Values that a waiter expects in the word of a lock. */
#define LOCK_HAS_WAITERS  2u  /* glibc, Go and Rust: locked, and a thread waits */
#define RWLOCK_IN_WRITING 3u  /* glibc: a writer holds it, and a thread waits */
#define LOCK_WITHOUT_ID	  16u /* musl, FUTEX_WAITERS left out: held, and the holder is not stored */

/* A futex this close above the stack pointer is in the frame of a waiting function (musl). */
#define WAITER_BYTES 1024

/* Offsets from the word of a glibc mutex. */
#define MUTEX_OWNER 8
#define MUTEX_USERS 12
#define MUTEX_KIND  16
#define MUTEX_KINDS 0x3ffu /* bits of the kind: type, robust, protocol, shared, elision */

/* Offsets of the writer from the two words that threads wait at, in a glibc rwlock. */
#define RWLOCK_FROM_PHASE   16
#define RWLOCK_FROM_WRITERS 12

/*
 * Waiters of a kernel lock that are compared. A thousand threads that wait for one lock are one
 * part of a sampling pass.
 */
#define LOOK_LOCK_WAITERS 64
#define LOOK_FILE_LOCKS	  64 /* locks of a file that are examined */

#define CALL_FLOCK __NR_flock

/* Returns the 32-bit word at a user address; 0 if it cannot be read. */
static __always_inline __u32 fetch_word(struct looker *l, __u64 address)
{
	if (address & 3 || look_fetch(address, sizeof(__u32)))
		return 0;
	return (__u32)l->fetched[0];
}

/* Returns whether a holder may be reported: with a scope, only a thread of the same process. */
static __always_inline bool may_name(const struct looker *l, const struct task_struct *holder)
{
	const struct task_struct *task = (const void *)l->task;

	return !scoped || BPF_CORE_READ(holder, signal) == BPF_CORE_READ(task, signal);
}

static __always_inline void set_holder(struct look_on *on, const struct task_struct *task,
				       __u32 number)
{
	on->peer_pid = number;
	BPF_CORE_READ_INTO(&on->peer_comm, task, comm);
}

/* Sets the holder if `number` is a thread of the sampled process. Returns whether it is. */
static __always_inline bool set_thread(struct looker *l, __u32 number)
{
	const struct task_struct *task = (const void *)l->task;
	const struct task_struct *owner =
		find_task(l, find_level(l) & 31, number & FUTEX_TID_MASK, PID_OF_THREAD);

	if (!owner || BPF_CORE_READ(owner, signal) != BPF_CORE_READ(task, signal))
		return false;
	set_holder(&l->record.on, owner, BPF_CORE_READ(owner, pid));
	return true;
}

/* Sets the holder of a glibc mutex, whose other words must look like one. Returns whether it is. */
static __always_inline bool set_mutex_holder(struct looker *l, __u64 address)
{
	__u32 owner = fetch_word(l, address + MUTEX_OWNER);
	__u32 users = fetch_word(l, address + MUTEX_USERS);

	return users && users <= FUTEX_TID_MASK &&
	       !(fetch_word(l, address + MUTEX_KIND) & ~MUTEX_KINDS) && set_thread(l, owner);
}

/*
 * Returns the kind of a futex at which threads wait with LOCK_HAS_WAITERS. It is that of a
 * condition variable of musl if it is in the waiting function's own frame. With FUTEX_WAIT_BITSET
 * it may be a lock (Rust, readers of a glibc rwlock) or a counter: not known.
 */
static __always_inline __u8 kind_of_waiters(struct looker *l, __u64 address, __u32 command)
{
	if (command != FUTEX_WAIT)
		return LOOK_LOCK_UNKNOWN;
	if (set_mutex_holder(l, address))
		return LOOK_LOCK_MUTEX;
	return address - l->user_stack < WAITER_BYTES ? LOOK_LOCK_EVENT : LOOK_LOCK_MUTEX;
}

/*
 * Classifies the futex of the sampled thread and finds the thread that holds it: `operation` and
 * `expected` are from its system call. A global function: the verifier checks it once.
 */
__noinline int look_at_lock(__u64 address, __u32 operation, __u32 expected)
{
	__u32 command = operation & FUTEX_CMD_MASK;
	struct looker *l = looker_get();
	const struct task_struct *task;
	struct look_on *on;

	if (!l)
		return 0;
	on = &l->record.on;
	task = (const void *)l->task;
	l->pgd = (__u64)BPF_CORE_READ(task, mm, pgd);
	on->state = LOOK_LOCK_EVENT;
	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2) {
		on->state = LOOK_LOCK_MUTEX;
		set_thread(l, fetch_word(l, address));
	} else if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) {
		return 0;
	} else if (expected == (FUTEX_WAITERS | LOCK_WITHOUT_ID)) {
		on->state = LOOK_LOCK_MUTEX;
	} else if (expected & FUTEX_WAITERS) {
		if (set_thread(l, expected))
			on->state = LOOK_LOCK_MUTEX;
	} else if (expected == LOCK_HAS_WAITERS) {
		on->state = kind_of_waiters(l, address, command);
	} else if (expected == RWLOCK_IN_WRITING && command == FUTEX_WAIT_BITSET) {
		if (set_thread(l, fetch_word(l, address + RWLOCK_FROM_PHASE)) ||
		    set_thread(l, fetch_word(l, address + RWLOCK_FROM_WRITERS)))
			on->state = LOOK_LOCK_RWLOCK;
	}
	return 0;
}

/* The walk over the waiters of a kernel lock, or over the locks of a file. */
struct lock_walk {
	__u64 at, head; /* struct list_head */
	__u64 task;	/* the waiter that is looked for */
	__u64 file;	/* of that lock */
	__u32 pid;	/* holder of a file lock for which threads wait; 0: none */
	__u32 found;	/* 1: the waiter; of a file: number of locks for which threads wait */
	__u32 whole;	/* 1: the list was walked to its end */
	__u32 pad;
};

static long compare_waiter(__u32 i, void *context)
{
	struct lock_walk *w = context;
	const struct rwsem_waiter *waiter;

	if (!w->at || w->at == w->head)
		return 1;
	waiter = (const void *)(w->at - bpf_core_field_offset(struct rwsem_waiter, list));
	if ((__u64)BPF_CORE_READ(waiter, task) == w->task) {
		w->found = 1;
		return 1;
	}
	w->at = (__u64)BPF_CORE_READ(waiter, list.next);
	return 0;
}

/*
 * Returns whether the sampled thread waits for the kernel lock at `address`, and sets the thread
 * that holds it for writing. A global function: the verifier checks it once.
 */
__noinline int look_at_rwsem(__u64 address)
{
	const struct rw_semaphore *lock = (const void *)address;
	struct looker *l = looker_get();
	struct lock_walk w = {};
	const struct task_struct *owner;
	__u64 word;

	if (!l || !bpf_core_type_exists(struct rwsem_waiter) ||
	    !bpf_core_field_exists(lock->wait_list))
		return 0;
	w.head = address + bpf_core_field_offset(struct rw_semaphore, wait_list);
	w.at = (__u64)BPF_CORE_READ(lock, wait_list.next);
	w.task = l->task;
	bpf_loop(LOOK_LOCK_WAITERS, compare_waiter, &w, 0);
	if (!w.found)
		return 0;
	word = BPF_CORE_READ(lock, owner.counter);
	/* It may have had a futex, or a socket, whose memory it waits for now. */
	l->record.on.peer_pid = 0;
	__builtin_memset(l->record.on.peer_comm, 0, sizeof(l->record.on.peer_comm));
	l->record.on.state = word & RWSEM_BY_READERS ? LOOK_LOCK_READERS : LOOK_LOCK_RWLOCK;
	owner = (const void *)(word & ~RWSEM_FLAGS);
	if (owner && !(word & RWSEM_BY_READERS) && may_name(l, owner))
		set_holder(&l->record.on, owner, BPF_CORE_READ(owner, pid));
	return 1;
}

/* Returns whether the sampled thread is in a sleep that no signal ends, as waits for locks are. */
static __always_inline bool is_uninterruptible(const struct looker *l)
{
	const struct task_struct___look *task = (const void *)l->task;

	return BPF_CORE_READ(task, __state) & TASK_UNINTERRUPTIBLE;
}

/* Reports the lock of the thread's own address space, if it waits for that. */
static __always_inline void look_at_mmap_lock(struct looker *l)
{
	const struct task_struct *task = (const void *)l->task;
	__u64 mm = (__u64)BPF_CORE_READ(task, mm);

	if (mm && is_uninterruptible(l) &&
	    look_at_rwsem(mm + bpf_core_field_offset(struct mm_struct___lock, mmap_lock)))
		l->record.on.kind = LOOK_ON_MMAP_LOCK;
}

/* Reads one lock of a file: its list of blocked requests and its process. */
static long compare_file_lock(__u32 i, void *context)
{
	struct lock_walk *w = context;
	__u64 blocked, file, next = 0;
	__u32 pid;

	w->whole = w->at == w->head;
	if (!w->at || w->whole)
		return 1;
	if (bpf_core_type_exists(struct file_lock_core)) {
		const struct file_lock_core *lock =
			(const void *)(w->at -
				       bpf_core_field_offset(struct file_lock_core, flc_list));

		blocked = (__u64)lock +
			  bpf_core_field_offset(struct file_lock_core, flc_blocked_requests);
		pid = BPF_CORE_READ(lock, flc_pid);
		file = (__u64)BPF_CORE_READ(lock, flc_file);
	} else {
		const struct file_lock___whole *lock =
			(const void *)(w->at -
				       bpf_core_field_offset(struct file_lock___whole, fl_list));

		blocked = (__u64)lock +
			  bpf_core_field_offset(struct file_lock___whole, fl_blocked_requests);
		pid = BPF_CORE_READ(lock, fl_pid);
		file = (__u64)BPF_CORE_READ(lock, fl_file);
	}
	bpf_probe_read_kernel(&next, sizeof(next), (const void *)blocked);
	if (next && next != blocked) {
		w->pid = pid;
		w->file = file;
		w->found++;
	}
	bpf_probe_read_kernel(&w->at, sizeof(w->at), (const void *)w->at);
	return 0;
}

/*
 * Sets the process that holds the lock of a file for which threads wait in flock(2) or fcntl(2).
 * Several locks of a file, each with waiters, are different ranges or readers: which of them the
 * thread waits for is not known, and no holder is reported. A lock that the kernel frees during the
 * walk may leave a wrong number: it counts only while the list still begins with the same lock. A
 * global function: the verifier checks it once.
 */
__noinline int look_at_file_lock(__u64 file, __u32 call)
{
	const struct inode___lock *inode =
		(const void *)BPF_CORE_READ((const struct file *)file, f_inode);
	const struct file_lock_context *locks = BPF_CORE_READ(inode, i_flctx);
	struct looker *l = looker_get();
	const struct task_struct *owner;
	struct lock_walk w = {};
	__u64 first;

	if (!l || !locks)
		return 0;
	w.head = (__u64)locks +
		 (call == CALL_FLOCK ? bpf_core_field_offset(struct file_lock_context, flc_flock)
				     : bpf_core_field_offset(struct file_lock_context, flc_posix));
	bpf_probe_read_kernel(&w.at, sizeof(w.at), (const void *)w.head);
	first = w.at;
	bpf_loop(LOOK_FILE_LOCKS, compare_file_lock, &w, 0);
	bpf_probe_read_kernel(&w.at, sizeof(w.at), (const void *)w.head);
	if (w.at != first || !w.found)
		return 0;
	l->record.on.state = LOOK_LOCK_FILE;
	if (w.found > 1 || !w.whole)
		return 0;
	/*
	 * These locks belong to an open file, which other processes may have inherited: the process
	 * that took the lock may have ended (look_seek.h).
	 */
	if (call == CALL_FLOCK || (__s32)w.pid < 0)
		l->record.on.address = hidden_address(w.file);
	if ((__s32)w.pid <= 0)
		return 0;
	owner = find_task(l, 0, w.pid, PID_OF_PROCESS);
	if (owner && may_name(l, owner))
		set_holder(&l->record.on, owner, w.pid);
	return 0;
}

#endif
