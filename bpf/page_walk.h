/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * page_walk.h: the memory of another process, by its page tables. A read through them can not fault
 * and so waits for nobody: bpf_copy_from_user_task waits for each page that is not there, and for
 * as long as the owner of the file that it would come from likes (a FUSE server, say). What is not
 * resident is not read. x86-64 only; elsewhere nothing is known and every read fails.
 *
 * Page tables are named by physical addresses, and where the kernel maps physical memory differs
 * from boot to boot. page_layout.bpf.c finds out, once, when the loader runs it.
 */
#ifndef TROCAR_BPF_PAGE_WALK_H
#define TROCAR_BPF_PAGE_WALK_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "shared/abi/abi.h"

#define PAGE_TABLE_LEVELS 5
#define PAGE_TABLE_BITS	  9 /* of an address that each level looks up */
#define PAGE_ENTRY_BYTES  8
#define PAGE_BITS	  12
#define PAGE_PRESENT	  (1ull << 0)
#define PAGE_LARGE	  (1ull << 7) /* the entry is of memory, not of another table */
#define PAGE_LARGE_BITS	  30	      /* of the largest */
#define PAGE_FRAME	  0x000ffffffffff000ull
#define PAGE_TOP_4_LEVELS 39 /* bits below those that the first table looks up */
#define PAGE_TOP_5_LEVELS 48

/* How the kernel maps physical memory. */
struct page_layout {
	__u64 base;  /* the address of physical address 0; 0: not known */
	__u64 frame; /* the bits of an entry that are an address: memory encryption takes one */
	__u32 top;   /* PAGE_TOP_4_LEVELS or PAGE_TOP_5_LEVELS */
	__u32 pad;
};

/* Private. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct page_layout);
} page_layout __weak SEC(".maps");

/*
 * Where the kernel sees the byte that the tables at `table` have at `address`; 0: they have none,
 * or it is not resident. *ret_entry is the last entry on the way, and where it stands is *ret_at.
 */
static __always_inline __u64 page_walk_find(const struct page_layout *l, __u64 table, __u64 address,
					    __u64 *ret_entry, __u64 *ret_at)
{
	__u32 shift = l->top;
	__u64 entry, offset;

	for (int i = 0; i < PAGE_TABLE_LEVELS; i++) {
		*ret_at = table + (address >> (shift & 63) & 511) * PAGE_ENTRY_BYTES;
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

/*
 * Reads the word at `address`, which is aligned, of the process whose page tables begin at `pgd`. 0
 * or -1: it is not resident, or the tables changed meanwhile. The process may unmap it at any
 * moment: between the two looks at the entry the word is that page's, or somebody's who has the
 * page by then; so what is read is compared, and never told.
 */
static __always_inline long page_walk_read_word(__u64 pgd, __u64 address, __u32 *ret_word)
{
	__u32 zero = 0, word;
	const struct page_layout *l = bpf_map_lookup_elem(&page_layout, &zero);
	__u64 from, entry = 0, again = 0, at = 0;

	if (!l || !l->base)
		return -1;
	from = page_walk_find(l, pgd, address, &entry, &at);
	if (!from || bpf_probe_read_kernel(&word, sizeof(word), (const void *)from) ||
	    bpf_probe_read_kernel(&again, sizeof(again), (const void *)at) ||
	    (entry ^ again) & (PAGE_FRAME | PAGE_PRESENT))
		return -1;
	*ret_word = word;
	return 0;
}

#endif
