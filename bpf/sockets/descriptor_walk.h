/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * descriptor_walk.h: walks the descriptors of all processes, for an iterator over tasks that takes
 * several reads. It takes no reference and no lock of a file: iter/task_file would close files on
 * behalf of their processes. The iterator holds RCU, which keeps tables and files intact.
 */
#ifndef TROCAR_BPF_SOCKETS_DESCRIPTOR_WALK_H
#define TROCAR_BPF_SOCKETS_DESCRIPTOR_WALK_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel_socket.h"
#include "shared/abi/abi.h"

#define DESCRIPTOR_WORD_BITS 64 /* bits in a word of the bitmap of open descriptors */

/* Results of descriptor_walk_next that are no descriptor. */
#define DESCRIPTOR_NONE (-1) /* none in this step */
#define DESCRIPTOR_END	(-2) /* the process has no more */

/* The position of a pass over all processes. A pass takes several reads of the iterator. */
struct descriptor_walk {
	__u64 reading;	/* session_id of the pass that the other members belong to */
	__u64 task;	/* the task of which descriptors are walked; 0: none */
	__u64 files;	/* the descriptor table walked last; threads share it */
	__u64 fds, map; /* its file array and its bitmap of open descriptors; valid in one call */
	__u64 bits;	/* remaining bits of the current bitmap word */
	__u32 word, words; /* the next bitmap word, and the number of words */
	__u32 work;	   /* work since the last read ended, as SOCKET_STEP_WORK counts it */
	__u32 walked;	   /* descriptors of this process so far */
	__u32 all;	   /* descriptors of the pass so far */
	__u32 left_out;	   /* descriptors beyond a limit since the caller cleared it */
};

/* Starts a pass; the caller ends its first read by returning 1. */
static __always_inline void descriptor_walk_begin(struct descriptor_walk *w, __u64 reading)
{
	w->reading = reading;
	w->task = w->files = 0;
	w->work = w->all = 0;
}

/*
 * Returns the descriptor table of a thread; 0 if it shares the table of its leader, or that of the
 * task walked before.
 */
static __always_inline __u64 descriptor_walk_files(const struct descriptor_walk *w,
						   struct task_struct *task)
{
	const struct task_struct___socket *fields = (const void *)task;
	__u64 files = (__u64)BPF_CORE_READ(fields, files);

	if (task->pid != task->tgid && files == (__u64)BPF_CORE_READ(fields, group_leader, files))
		return 0;
	return files == w->files && !w->task ? 0 : files;
}

/* Starts with a process, or continues with the process that the last read stopped in. */
static __always_inline void descriptor_walk_enter(struct descriptor_walk *w,
						  struct task_struct *task, __u64 files)
{
	const struct files_struct___socket *table = (const void *)files;
	const struct fdtable___socket *fdt = BPF_CORE_READ(table, fdt);

	if (w->task != (__u64)task) {
		w->task = (__u64)task;
		w->word = w->walked = 0;
		w->bits = 0;
	}
	w->files = files;
	w->fds = (__u64)BPF_CORE_READ(fdt, fd);
	w->map = (__u64)BPF_CORE_READ(fdt, open_fds);
	w->words = BPF_CORE_READ(fdt, max_fds) / DESCRIPTOR_WORD_BITS;
}

/* Returns the index of the lowest set bit. */
static __always_inline __u32 descriptor_walk_lowest(__u64 bits)
{
	return __builtin_popcountll((bits & -bits) - 1);
}

/*
 * Takes one step: returns the next descriptor, or one of the values above. Beyond `files_max`
 * descriptors of a process, or `pass_max` of the pass, they are counted in `left_out`.
 */
static __always_inline __s32 descriptor_walk_next(struct descriptor_walk *w, __u32 files_max,
						  __u32 pass_max)
{
	__u64 bits = w->bits;
	__u32 fd;

	if (bits) {
		fd = (w->word - 1) * DESCRIPTOR_WORD_BITS + descriptor_walk_lowest(bits);
		w->bits = bits & (bits - 1);
		w->work += 2;
		w->walked++;
		w->all++;
		return fd;
	}
	if (w->word >= w->words)
		return DESCRIPTOR_END;
	bpf_probe_read_kernel(&bits, sizeof(bits), (const __u64 *)w->map + w->word);
	w->word++;
	w->work += 2;
	if (w->walked >= files_max || w->all >= pass_max) {
		w->left_out += __builtin_popcountll(bits);
		bits = 0;
	}
	w->bits = bits;
	return DESCRIPTOR_NONE;
}

/* Returns the file of a descriptor of the walked process, or NULL. */
static __always_inline const struct file *descriptor_walk_file(const struct descriptor_walk *w,
							       __u32 fd)
{
	const struct file *file = 0;

	if (bpf_probe_read_kernel(&file, sizeof(file), (struct file **)w->fds + fd))
		return 0;
	return file;
}

/*
 * Walks until a read has done enough: `step` is a callback of bpf_loop that calls
 * descriptor_walk_next once and returns 1 at DESCRIPTOR_END. Returns whether descriptors of the
 * process are left for the next read.
 */
static __always_inline bool descriptor_walk_run(struct descriptor_walk *w, void *context,
						long (*step)(__u32 i, void *context))
{
	__u32 n = (SOCKET_STEP_WORK - w->work) / 2 + 1;

	if (n > SOCKET_STEP_WORK)
		n = SOCKET_STEP_WORK;
	bpf_loop(n, step, context, 0);
	if (w->bits || w->word < w->words)
		return true;
	w->task = 0;
	return false;
}

/*
 * Returns whether this read may do more work, and counts a task. If it may not, or if descriptors
 * of the task are left, the iterator returns descriptor_walk_pause.
 */
static __always_inline bool descriptor_walk_has_room(struct descriptor_walk *w)
{
	return w->work < SOCKET_STEP_WORK && ++w->work;
}

/*
 * Ends the read(2): returns the 1 of the iterator. The next read starts with the same task
 * (bpf_seq_read in kernel/bpf/bpf_iter.c).
 */
static __always_inline int descriptor_walk_pause(struct descriptor_walk *w)
{
	w->work = 0;
	return 1;
}

#endif
