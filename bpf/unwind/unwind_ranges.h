/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_ranges.h: fills a table with the executable ranges that the kernel finds mapped in a
 * process. The consumer chooses the addresses to look up; no other word from it is trusted.
 */
#ifndef TROCAR_BPF_UNWIND_UNWIND_RANGES_H
#define TROCAR_BPF_UNWIND_UNWIND_RANGES_H

#include <bpf/bpf_core_read.h>

#include "bpf/kernel/kernel.h"
#include "bpf/mappings/mapped_file.h"
#include "bpf/maps/maps.h"

/* State of the lookups of one table's claims. */
struct ranges_writer {
	struct task_struct *task;
	struct unwind_ranges *ranges;
	__u32 missed;
	__u32 cut;
	__u64 range, check; /* of the current claim */
	__u64 inode;	    /* of the file that the claim names; 0: none */
};

/* The last generation that was assigned: none is ever reused. Private. */
MAP(ARRAY, last_generation, __u32, __u64, 1);

static long take_range(struct task_struct *task, struct vm_area_struct *vma, void *context)
{
	struct ranges_writer *w = context;
	struct file *file = vma->vm_file;
	__u64 pages = (vma->vm_end - vma->vm_start) >> UNWIND_RANGE_SHIFT;

	if (!(vma->vm_flags & VM_EXEC) || mapped_file_inode(vma, file) != w->inode)
		return 0;
	if (pages > UNWIND_RANGE_PAGES_MAX) {
		pages = UNWIND_RANGE_PAGES_MAX;
		w->cut++;
	}
	w->range = UNWIND_RANGE(vma->vm_start >> UNWIND_RANGE_SHIFT, pages);
	w->check = mapped_file_number(vma);
	return 0;
}

/*
 * Looks up claim `i` and writes its range. A claim that is not in an executable mapping of its file
 * keeps its place with an empty range. So does a claim that is looked up while another task changes
 * the mappings, because bpf_find_vma does not wait for the lock. The memory itself is not read.
 */
static long fill_claim(__u32 i, void *context)
{
	struct ranges_writer *w = context;
	const struct unwind_claims *claims = map_single(&unwind_claims);
	__u64 start;

	if (!claims || i >= UNWIND_RANGES)
		return 1;
	start = READ_WORD(claims->starts[i]);
	w->range = UNWIND_RANGE(start >> UNWIND_RANGE_SHIFT, 0);
	w->check = 0;
	w->inode = READ_WORD(claims->inodes[i]);
	bpf_find_vma(w->task, start, take_range, w, 0);
	w->ranges->checks[i] = w->check;
	w->missed += !UNWIND_RANGE_PAGES(w->range);
	w->ranges->ranges[i] = w->range;
	return 0;
}

/*
 * Fills the ranges of a table from the mappings of `task`. The claims of the consumer only select
 * the mappings; a false claim costs it that range. A table with ranges of two processes must never
 * be visible: only one caller fills it at a time, and its generation is 0 until all ranges are
 * written. Returns the new generation; 0 on failure.
 */
static __always_inline __u64 unwind_ranges_fill(struct ranges_writer *w,
						const struct unwind_claims *claims)
{
	struct unwind_ranges *r = w->ranges;
	struct task_struct *task = w->task;
	__u64 number;
	__u32 count = READ_WORD(claims->count);
	__u64 *generations = map_single(&last_generation);

	if (!generations || count > UNWIND_RANGES)
		return 0;
	__sync_lock_test_and_set(&r->table_generation, 0);
	r->tgid = task->tgid;
	r->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	r->image = task->self_exec_id;
	r->count = count;
	r->unmapped_ns = 0;
	bpf_loop(count, fill_claim, w, 0);
	number = __sync_fetch_and_add(generations, 1) + 1;
	__sync_lock_test_and_set(&r->table_generation, number);
	return number;
}

#endif
