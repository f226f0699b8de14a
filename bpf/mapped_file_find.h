/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mapped_file_find.h: finds the file that is mapped at an address of the current task, at a tick.
 *
 * bpf_find_vma tries the lock of the mappings and does not wait. Where interrupts are off, as at a
 * tick, the kernel releases the lock only after the tick: until then no mapping can change, and a
 * second call on this CPU fails (bpf_mmap_unlock_get_irq_work, kernel/bpf/mmap_unlock_work.h). So
 * the first call of a tick locks, and the others read the tree of mappings themselves (vma_tree.h).
 * So does the first where somebody else has the lock: what the tree then says was true at the tick,
 * but need not stay so until its end.
 */
#ifndef TROCAR_BPF_MAPPED_FILE_FIND_H
#define TROCAR_BPF_MAPPED_FILE_FIND_H

#include <linux/errno.h>

#include "bpf/mapped_file.h"
#include "bpf/vma_tree.h"

/* Too large for the BPF stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vma_node);
} mapped_file_node __weak SEC(".maps");

static long take_file_number(struct task_struct *task, struct vm_area_struct *vma, void *context)
{
	*(__u32 *)context = mapped_file_number(vma);
	return 0;
}

/* The same by the tree of mappings. A global function, as stack_walk. */
__weak __noinline __u32 mapped_file_find_in_tree(__u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 vma = 0, last;
	__u32 zero = 0;
	struct vma_node *node = bpf_map_lookup_elem(&mapped_file_node, &zero);
	const struct mm_struct *mm = BPF_CORE_READ(task, mm);

	if (!node || !mm || !vma_tree_find(mm, node, address, &vma, &last) || !vma)
		return 0;
	return mapped_file_number((const struct vm_area_struct *)vma);
}

/*
 * Returns the number of the file at `address` of `task`; 0 when no file is mapped there. NULL: of
 * the current task, at a tick. There *locked is 0 at the start, and becomes 1 when the lock is held
 * until the end: until then the answer stays true. Of another task the answer is also 0 when
 * somebody else has the lock.
 */
static __always_inline __u32 mapped_file_find(struct task_struct *task, __u32 *locked,
					      __u64 address)
{
	__u32 number = 0;
	long r = -EBUSY;

	if (task) {
		bpf_find_vma(task, address, take_file_number, &number, 0);
		return number;
	}
	if (!*locked)
		r = bpf_find_vma(bpf_get_current_task_btf(), address, take_file_number, &number, 0);
	if (r == -EBUSY)
		return mapped_file_find_in_tree(address);
	*locked = 1;
	return number;
}

#endif
