/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_poll.h: goes through the descriptors that a thread in poll waits for. Their list is in its
 * user memory, which is read through the page tables: what is not resident, or lies behind the
 * first page, is not gone through. The process can write anything there, and only has its own files
 * judged by it.
 */
#ifndef TROCAR_BPF_LOOK_POLL_H
#define TROCAR_BPF_LOOK_POLL_H

#include "bpf/look_set.h"

/* Returns the file of a descriptor of the thread that is looked at; NULL: there is none. */
static __always_inline const struct file *look_find_file(const struct looker *l, __u32 fd)
{
	const struct task_struct___look *task = (const void *)l->task;
	const struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = 0;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	files = BPF_CORE_READ(table, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), &files[fd]))
		return 0;
	return file;
}

/* Judges one descriptor of looker.fetched, each word of which is a struct pollfd. */
static long look_at_polled(__u32 i, void *context)
{
	struct looker *l = *(struct looker **)context;
	const struct file *file;

	if (i >= LOOK_POLL_ITEMS)
		return 1;
	file = look_find_file(l, (__u32)l->fetched[i]);
	l->record.on.items++;
	if (file)
		look_at_member(l, file);
	return 0;
}

/* Goes through the `count` descriptors at `list`. A global function: it is verified once. */
__noinline int look_at_poll(__u64 list, __u64 count)
{
	struct looker *l = looker_get();
	const struct task_struct *task;
	__u32 n = PAGE_BYTES - (list & (PAGE_BYTES - 1));

	if (!l)
		return 0;
	look_begin_set(l, LOOK_ON_POLL);
	n /= sizeof(__u64);
	if (n > LOOK_POLL_ITEMS)
		n = LOOK_POLL_ITEMS;
	if (n > count)
		n = count;
	l->record.on.cut = n < count;
	if (!n)
		return 0;
	task = (const void *)l->task;
	l->pgd = (__u64)BPF_CORE_READ(task, mm, pgd);
	if (look_fetch(list, n * sizeof(__u64))) {
		l->record.on.cut = 1;
		return 0;
	}
	bpf_loop(n, look_at_polled, &l, 0);
	look_choose_peer(l);
	return 0;
}

#endif
