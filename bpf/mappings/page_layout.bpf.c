// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * page_layout.bpf.c: finds where the kernel maps physical memory, without any symbol. The page
 * tables of a process also map the kernel's memory, including the tables themselves. Of all
 * possible start addresses of the mapping, only the true one makes the tables map themselves at
 * their own addresses. The loader runs the program once, before any other program uses the result.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>

#include "bpf/kernel/kernel.h"
#include "bpf/mappings/page_walk.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define GIB	   (1ull << 30) /* the base is a multiple of it (kernel_randomize_memory) */
#define BEGINNINGS 16384u	/* number of addresses tried: as many GiB of memory */

/* With four levels every kernel address is in this upper half (Documentation, x86_64/mm). */
#define FOUR_LEVELS_FROM 0xffff800000000000ull

/*
 * Bits of an entry that may mark encrypted memory and then are not part of the address (AMD SME,
 * SEV).
 */
static const __u64 encrypted[] = { 0, 1ull << 51, 1ull << 47 };

/* A search for the base that maps two known addresses to themselves. */
struct search {
	struct page_layout layout;
	__u64 pgd, mm;
	__u64 first; /* lowest base to try */
	__u64 found;
};

static __always_inline bool leads_to_itself(const struct search *s, const struct page_layout *l,
					    __u64 address)
{
	__u64 entry = 0, at = 0;

	return page_walk_find(l, s->pgd, address, &entry, &at) == address;
}

/*
 * Tries one base, from the lowest upwards. Below the true base nothing is mapped that a read could
 * disturb; above the memory there may be device registers.
 */
static long try_beginning(__u32 i, struct search *s)
{
	struct page_layout l = s->layout;

	l.base = s->first + i * GIB;
	if (l.base > s->pgd)
		return 1;
	if (!leads_to_itself(s, &l, s->pgd) || !leads_to_itself(s, &l, s->mm))
		return 0;
	s->found = l.base;
	return 1;
}

static __always_inline void search_layout(struct search *s, __u64 bit)
{
	s->layout.frame = PAGE_FRAME & ~bit;
	bpf_loop(BEGINNINGS, try_beginning, s, 0);
}

SEC("syscall")
int page_learn(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct search s = {};
	__u32 zero = 0;

	s.mm = (__u64)BPF_CORE_READ(task, mm);
	s.pgd = (__u64)BPF_CORE_READ(task, mm, pgd);
	if (!s.pgd)
		return 0;
	s.layout.top = s.pgd >= FOUR_LEVELS_FROM ? PAGE_TOP_4_LEVELS : PAGE_TOP_5_LEVELS;
	s.first = (s.pgd & ~(GIB - 1)) - (BEGINNINGS - 1) * GIB;
	for (int i = 0; i < 3 && !s.found; i++)
		search_layout(&s, encrypted[i]);
	if (!s.found)
		return 0;
	s.layout.base = s.found;
	bpf_map_update_elem(&page_layout, &zero, &s.layout, BPF_ANY);
	return 1;
}
