/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/memory.h"

#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/tools/macro.h"

#define HUGE_PAGE	   (2u << 20)
#define MMAP_THRESHOLD_MAX (32 << 20) /* the largest that glibc takes */

/*
 * Releases the pages of one object's segments without PF_W. The dynamic loader has written to the
 * other segments, and MADV_DONTNEED would undo that. madvise(2) fails for an object without a file,
 * such as the vDSO.
 */
static int give_object_back(struct dl_phdr_info *info, size_t bytes, void *context)
{
	const uintptr_t page = *(const uintptr_t *)context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = (info->dlpi_addr + segment->p_vaddr) / page * page;
		uintptr_t end =
			ALIGN_UP(info->dlpi_addr + segment->p_vaddr + segment->p_memsz, page);

		if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
			(void)madvise((void *)start, end - start, MADV_DONTNEED);
	}
	return 0;
}

void memory_give_back(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	malloc_trim(0);
	dl_iterate_phdr(give_object_back, &page);
}

void memory_share_arena(void)
{
	(void)mallopt(M_ARENA_MAX, 1); /* fails only for an unknown parameter */
}

void memory_keep(size_t heap_bytes)
{
	uintptr_t from, to;
	void *first;

	memory_share_arena();
	(void)mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_MAX);
	(void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
	(void)mallopt(M_TOP_PAD, (int)heap_bytes);
	first = malloc(HUGE_PAGE); /* more than the heap has: it grows by heap_bytes */
	from = ALIGN_UP((uintptr_t)first, HUGE_PAGE);
	to = (uintptr_t)sbrk(0) / HUGE_PAGE * HUGE_PAGE;
	if (first && from < to)
		(void)madvise((void *)from, to - from, MADV_HUGEPAGE);
	free(first);
}

void memory_trim(void)
{
	malloc_trim(0);
}

void memory_drop(void *start, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ALIGN_UP((uintptr_t)start, page);
	uintptr_t to = ((uintptr_t)start + bytes) / page * page;

	if (from < to)
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
}
