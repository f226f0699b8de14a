/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * vma_tree.h: finds the mappings of one process on kernels without an open-coded iterator over them
 * (Linux 6.1 to 6.6). The VMA iterator of these kernels locks the memory of every process one after
 * the other, and any user can hold the lock of an own process for any time. So this code takes no
 * lock: it reads the tree of mappings as bytes, and uses it only to find the addresses for
 * bpf_find_vma, which tries the lock and does not wait. A tree that changes during the read may
 * contain anything: every read may fail, every loop has a limit, and the kernel's count of mappings
 * shows whether all were found.
 *
 * The layout of a node is that of include/linux/maple_tree.h on 64-bit kernels, since 6.1.
 */
#ifndef TROCAR_BPF_MAPPINGS_VMA_TREE_H
#define TROCAR_BPF_MAPPINGS_VMA_TREE_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"

#define VMA_TREE_LEVELS	     8		/* levels of a tree; 3 hold a million mappings */
#define VMA_TREE_STEPS	     (1u << 17) /* mappings and gaps of a process: twice vm.max_map_count */
#define VMA_NODE_WORDS	     32
#define VMA_NODE_MASK	     0xffull /* bits of a node pointer that are not its address */
#define VMA_NODE_TYPE(entry) ((entry) >> 3 & 15)
#define VMA_NODE_LEAF	     1
#define VMA_NODE_RANGE	     2
#define VMA_NODE_GAPS	     3 /* a range node with the largest gap below each slot */
#define VMA_NODE_PIVOTS_MAX  15
#define VMA_ADDRESSES	     (~0ull >> 1)

/*
 * Word 0 is the parent. Then follow the pivots: the last address of each slot except the last. Then
 * follow the slots.
 */
struct vma_node {
	__u64 words[VMA_NODE_WORDS];
};

struct vma_node_shape {
	__u32 pivots, slots; /* number of pivots, and the word of the first slot */
	__u32 end;	     /* offset of the byte with the index of the last slot */
	__u32 pad;
};

/*
 * By the type of a node. In memory: with constants the verifier would check all later code for each
 * type.
 */
static const volatile struct vma_node_shape vma_node_shapes[4] = {
	[VMA_NODE_LEAF] = { .pivots = VMA_NODE_PIVOTS_MAX, .slots = 16, .end = 248 },
	[VMA_NODE_RANGE] = { .pivots = VMA_NODE_PIVOTS_MAX, .slots = 16, .end = 248 },
	[VMA_NODE_GAPS] = { .pivots = 9, .slots = 10, .end = 240 },
};

/*
 * Returns the word of the slot that contains `address`, and sets *ret_last to the last address of
 * that slot. A global function: the verifier checks it once, and not at each level of each descent.
 * Its loop is not unrolled: that would take more stack than 6.1 has left, 512 bytes in total.
 */
__weak __noinline __u32 vma_node_find_slot(const struct vma_node *n, __u32 type, __u64 address,
					   __u64 max, __u64 *ret_last)
{
	const volatile struct vma_node_shape *shape = &vma_node_shapes[type & 3];
	__u32 pivots = shape->pivots, slot = 0;
	__u64 used, last;

	if (!n || !ret_last)
		return 0;
	used = ((const __u8 *)n->words)[shape->end & (sizeof(n->words) - 1)];
	/* If all pivots are in use, that byte is a part of the last slot. */
	if (type != VMA_NODE_GAPS && n->words[VMA_NODE_PIVOTS_MAX])
		used = VMA_NODE_PIVOTS_MAX - (n->words[VMA_NODE_PIVOTS_MAX] == max);
	if (used > pivots)
		used = pivots;
	/* Passed through memory, so that the verifier merges the paths that lead here. */
	*(volatile __u64 *)ret_last = used;
	asm volatile("" ::: "memory");
	used = *(volatile __u64 *)ret_last;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < VMA_NODE_PIVOTS_MAX; i++) {
		__u64 below = ((n->words[1 + i] & VMA_ADDRESSES) - address) >> 63;

		slot += below & ((__u64)i - used) >> 63;
	}
	slot &= 15;
	last = n->words[(1 + slot) & (VMA_NODE_WORDS - 1)];
	*ret_last = slot < used ? last : max;
	return shape->slots + slot;
}

/*
 * Finds the entry of the tree of `mm` at `address`: *ret_vma is a mapping, or 0 for a gap, and
 * *ret_last its last address. Returns false if the tree cannot be read. `node` is scratch memory.
 */
static __always_inline bool vma_tree_find(const struct mm_struct *mm, struct vma_node *node,
					  __u64 address, __u64 *ret_vma, __u64 *ret_last)
{
	__u64 entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root), last = ~0ull;

	for (int i = 0; i < VMA_TREE_LEVELS; i++) {
		__u32 type = VMA_NODE_TYPE(entry), slot;

		if (type < VMA_NODE_LEAF || type > VMA_NODE_GAPS ||
		    bpf_probe_read_kernel(node, sizeof(*node),
					  (const void *)(entry & ~VMA_NODE_MASK)))
			return false;
		slot = vma_node_find_slot(node, type, address, last, &last);
		entry = node->words[slot & (VMA_NODE_WORDS - 1)];
		if (type == VMA_NODE_LEAF) {
			*ret_vma = entry;
			*ret_last = last;
			return last >= address;
		}
	}
	return false;
}

#endif
