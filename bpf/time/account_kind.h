/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * account_kind.h: finds the kind of a thread's wait from the kernel's own stall accounting and from
 * the thread's system call. It needs no hook: both are in the task that goes to sleep.
 */
#ifndef TROCAR_BPF_TIME_ACCOUNT_KIND_H
#define TROCAR_BPF_TIME_ACCOUNT_KIND_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel_cast.h"
#include "bpf/time/fault_entry.h"
#include "bpf/time/task_halt.h"
#include "shared/abi/abi.h"

#define WAITS_MAX    512	    /* larger than every number in wait_calls.def */
#define ACCOUNT_NONE 0		    /* a number without a row: no wait is ACCOUNT_RUNNING */
#define ACCOUNT_FILE ACCOUNT_PARTS_ /* the descriptor decides */

#if defined(__TARGET_ARCH_x86)
#define WAIT_CALL(name, x86, arm64, part) [x86] = ACCOUNT_##part,
#define WAIT_CALL_X86(name, x86, part)	  [x86] = ACCOUNT_##part,
#else
#define WAIT_CALL(name, x86, arm64, part) [arm64] = ACCOUNT_##part,
#define WAIT_CALL_X86(name, x86, part)
#endif

/* The kind of wait of each system call, by its number. */
static const volatile __u8 waits[WAITS_MAX] = {
#include "shared/abi/wait_calls.def"
};

/*
 * Offset of the user-mode registers in a kernel stack, equal for all threads of a kernel; 0: not
 * determined yet. So a helper determines it once, and not at each switch.
 */
static __u64 regs_at;

static __noinline int ask_regs_at(struct task_struct *task)
{
	void *volatile regs = (void *)bpf_task_pt_regs(task);
	__u64 at = 0;

	/* The verifier treats a pointer that was read from memory as a number. */
	bpf_probe_read_kernel(&at, sizeof(at), (void *)&regs);
	regs_at = at - (__u64)task->stack;
	return 0;
}

static __always_inline const struct pt_regs *account_kind_regs(struct task_struct *task)
{
	if (!has_cast)
		return (const struct pt_regs *)bpf_task_pt_regs(task);
	if (!regs_at)
		ask_regs_at(task);
	return KERNEL_CAST((__u64)task->stack + regs_at, pt_regs);
}

/*
 * Returns the number of the system call that `task` is in, and sets its first argument. A negative
 * number: the task is in no system call.
 */
static __always_inline int account_kind_call(struct task_struct *task, __u64 *ret_first)
{
	const struct pt_regs *regs = account_kind_regs(task);

#if defined(__TARGET_ARCH_x86)
	*ret_first = regs->di;
	return (int)regs->orig_ax;
#else
	*ret_first = regs->orig_x0;
	return regs->syscallno;
#endif
}

/* Returns the type of the file, as in stat(2). To the verifier `file` is a number. */
static __always_inline unsigned short file_mode(const struct file *file)
{
	if (!has_cast)
		return BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	return KERNEL_CAST(file, file)->f_inode->i_mode & S_IFMT;
}

/*
 * Returns the file pointer stored at `place`, or NULL. It is read as a struct with a pointer as its
 * first member.
 */
static __always_inline const struct file *file_at(struct file **place)
{
	struct file *file = 0;

	if (!has_cast) {
		bpf_probe_read_kernel(&file, sizeof(file), place);
		return file;
	}
	return (const struct file *)KERNEL_CAST(place, list_head)->next;
}

/*
 * Returns the kind of wait of a thread that reads or writes descriptor `fd`, by the type of the
 * file.
 */
static __always_inline __u32 account_kind_file(const struct task_struct *task, __u64 fd)
{
	const struct files_struct *files = task->files;
	const struct fdtable *table;
	const struct file *file;
	unsigned short mode;

	if (!files)
		return ACCOUNT_OTHER;
	table = files->fdt;
	if (fd >= table->max_fds)
		return ACCOUNT_OTHER;
	file = file_at(table->fd + fd);
	if (!file)
		return ACCOUNT_OTHER;
	mode = file_mode(file);
	if (mode == S_IFIFO)
		return ACCOUNT_PIPE;
	if (mode == S_IFSOCK)
		return ACCOUNT_SOCKET;
	/* The rest are eventfds, timerfds and terminals: a reader of these waits for work. */
	return mode == S_IFREG || mode == S_IFBLK || mode == S_IFDIR ? ACCOUNT_IO : ACCOUNT_IDLE;
}

/*
 * Returns the kind of wait of a thread that is in no system call: a page, if it is in a page fault
 * and is not exiting.
 */
static __always_inline __u32 account_kind_outside(struct task_struct *task)
{
	if (task->flags & (PF_EXITING | PF_SIGNALED))
		return ACCOUNT_OTHER;
	if (!regs_at)
		ask_regs_at(task);
	return fault_entry_is((__u64)task->stack + regs_at) ? ACCOUNT_FAULT : ACCOUNT_OTHER;
}

/* Returns whether `task` runs only in the kernel and so makes no system calls. */
static __always_inline bool account_kind_is_kernel(const struct task_struct *task)
{
	return task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER);
}

/*
 * Returns the kind of wait of `task`, which sleeps or goes to sleep in `state`, and sets *ret_call
 * as time_account.call. A memory stall has priority over an I/O wait, because a thread that reads
 * back from swap is in both. A halt from outside has priority over both: the thread cannot continue
 * whatever else it waits for.
 */
static __always_inline __u32 account_kind_of(struct task_struct *task, unsigned int state,
					     __u32 *ret_call)
{
	unsigned int stalls = task->psi_flags;
	__u32 kind = task_halt(state, task->jobctl, BPF_CORE_READ_BITFIELD(task, frozen));
	__u64 first = 0;
	int call = account_kind_call(task, &first);

	*ret_call = call < 0 || kind ? ACCOUNT_CALL_NONE : (__u32)call;
	if (account_kind_is_kernel(task))
		*ret_call = ACCOUNT_CALL_KERNEL;
	else if (task->thread_info.flags & TIF_COMPAT)
		*ret_call = ACCOUNT_CALL_COMPAT;
	if (kind)
		return kind;
	if (stalls & TSK_MEMSTALL)
		return ACCOUNT_MEMORY;
	if (stalls & TSK_IOWAIT)
		return ACCOUNT_IO;
	if (*ret_call == ACCOUNT_CALL_NONE)
		return account_kind_outside(task);
	if (*ret_call >= WAITS_MAX)
		return ACCOUNT_OTHER;
	kind = waits[*ret_call];
	if (kind == ACCOUNT_FILE)
		return account_kind_file(task, first);
	return kind == ACCOUNT_NONE ? ACCOUNT_OTHER : kind;
}

#endif
