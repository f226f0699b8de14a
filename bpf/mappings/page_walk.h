/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * page_walk.h: reads the memory of another process through its page tables. Such a read cannot
 * fault and so waits for no other thread. In contrast, bpf_copy_from_user_task waits for each page
 * that is not resident, for as long as the server of its file takes (a FUSE server, for example).
 * Memory that is not resident is not read. x86-64 only; on other architectures every read fails.
 *
 * Page tables contain physical addresses, and the place where the kernel maps physical memory
 * differs from boot to boot. page_layout.bpf.c finds it once, when the loader runs it.
 */
#ifndef TROCAR_BPF_MAPPINGS_PAGE_WALK_H
#define TROCAR_BPF_MAPPINGS_PAGE_WALK_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/maps/map_macros.h"
#include "shared/abi/abi.h"

#define PAGE_TABLE_LEVELS 5
#define PAGE_TABLE_BITS	  9 /* address bits per level */
#define PAGE_TABLE_MASK	  ((1u << PAGE_TABLE_BITS) - 1)
#define PAGE_ENTRY_BYTES  8
#define PAGE_BITS	  12
#define PAGE_PRESENT	  (1ull << 0)
#define PAGE_LARGE	  (1ull << 7) /* the entry points to memory, not to another table */
#define PAGE_LARGE_BITS	  30	      /* address bits within the largest page */
#define PAGE_FRAME	  0x000ffffffffff000ull
#define PAGE_TOP_4_LEVELS 39 /* address bits below those of the first table */
#define PAGE_TOP_5_LEVELS 48

/* How the kernel maps physical memory. */
struct page_layout {
	__u64 base;  /* where physical address 0 is mapped; 0: unknown */
	__u64 frame; /* address bits of an entry: memory encryption uses one of them */
	__u32 top;   /* PAGE_TOP_4_LEVELS or PAGE_TOP_5_LEVELS */
	__u32 pad;
};

/* Private. */
__weak MAP(ARRAY, page_layout, __u32, struct page_layout, 1);

/*
 * Returns the kernel address of the byte that the page tables at `table` map at `address`; 0 if it
 * is not mapped or not resident. *ret_entry is the last entry that was followed, *ret_at its
 * address.
 */
static __always_inline __u64 page_walk_find(const struct page_layout *l, __u64 table, __u64 address,
					    __u64 *ret_entry, __u64 *ret_at)
{
	__u32 shift = l->top;
	__u64 entry, offset;

	for (int i = 0; i < PAGE_TABLE_LEVELS; i++) {
		*ret_at = table + (address >> (shift & 63) & PAGE_TABLE_MASK) * PAGE_ENTRY_BYTES;
		if (bpf_probe_read_kernel(&entry, sizeof(entry), (const void *)*ret_at) ||
		    !(entry & PAGE_PRESENT))
			return 0;
		if (shift <= PAGE_BITS || (shift <= PAGE_LARGE_BITS && entry & PAGE_LARGE)) {
			*ret_entry = entry;
			offset = (1ull << (shift & 63)) - 1;
			return l->base + (entry & l->frame & ~offset) + (address & offset);
		}
		table = l->base + (entry & l->frame);
		shift -= PAGE_TABLE_BITS;
	}
	return 0;
}

#endif
