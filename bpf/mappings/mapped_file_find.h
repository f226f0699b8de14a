/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mapped_file_find.h: finds the file that is mapped at an address of a process.
 *
 * It reads the tree of mappings as bytes (vma_tree.h) and takes no lock. So it neither waits nor
 * fails while a thread of the process holds or waits for the mmap lock, which a thread that does
 * not run may do for a long time. A tree that changes during the read may lead anywhere: a mapping
 * is accepted only if it belongs to the process and contains the address.
 */
#ifndef TROCAR_BPF_MAPPINGS_MAPPED_FILE_FIND_H
#define TROCAR_BPF_MAPPINGS_MAPPED_FILE_FIND_H

#include "bpf/mappings/mapped_file.h"
#include "bpf/mappings/vma_tree.h"

/* A mapping, and scratch memory for the search, for which the BPF stack is too small. */
struct mapped_file_found {
	__u64 start, end;
	__u64 number; /* mapped_file_number */
	struct vma_node node;
};

/*
 * Finds the mapping at `address` of `mm`, the address of a struct mm_struct. Returns 1 and sets
 * start, end and number of *found; 0 if nothing is mapped there or the tree cannot be read. A
 * global function, as stack_walk.
 */
__weak __noinline int mapped_file_find(__u64 mm, __u64 address, struct mapped_file_found *found)
{
	const struct vm_area_struct *vma;
	__u64 at = 0, last;

	if (!found || !mm ||
	    !vma_tree_find((const struct mm_struct *)mm, &found->node, address, &at, &last) || !at)
		return 0;
	vma = (const struct vm_area_struct *)at;
	found->number = mapped_file_number(vma);
	found->start = BPF_CORE_READ(vma, vm_start);
	found->end = BPF_CORE_READ(vma, vm_end);
	return (__u64)BPF_CORE_READ(vma, vm_mm) == mm && address >= found->start &&
	       address < found->end;
}

#endif
