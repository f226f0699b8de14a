/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dropped.c: a callback of libc's qsort(3), in a process with all unused memory reclaimed: of the
 * mappings of the program and its libraries only code is resident. A child of fork(2) is like that
 * too, and any process when memory is short. sorts() lies in a library: with -DSORTS this file is
 * that library.
 */
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "../../workloads/workload.h"

#define GOODS	 500
#define PAGE	 4096ul
#define SEGMENTS 32

void sorts(int (*compare)(const void *, const void *));

#ifdef SORTS
void sorts(int (*compare)(const void *, const void *))
{
	int goods[GOODS];

	for (int i = 0; i < GOODS; i++)
		goods[i] = (i * 37) % GOODS;
	qsort(goods, GOODS, sizeof(*goods), compare);
	KEEP_FRAME();
}
#else
static int compare(const void *a, const void *b)
{
	for (unsigned int i = 0; i < 100; i++)
		KEEP_FRAME();
	return *(const int *)a - *(const int *)b;
}

/* Drops the read-only parts of one file. The list of segments is a part of it: read it no more. */
static int drop(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	ElfW(Phdr) segments[SEGMENTS];

	if (info->dlpi_phnum > SEGMENTS)
		return 0;
	memcpy(segments, info->dlpi_phdr, info->dlpi_phnum * sizeof(*segments));
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &segments[i];
		ElfW(Addr) start = (info->dlpi_addr + p->p_vaddr) & ~(PAGE - 1);
		ElfW(Addr) end = info->dlpi_addr + p->p_vaddr + p->p_memsz;

		if (p->p_type == PT_LOAD && p->p_flags == PF_R)
			(void)madvise((void *)start, end - start, MADV_DONTNEED);
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "dropped SECONDS");

	sorts(compare); /* binds its callees */
	dl_iterate_phdr(drop, NULL);
	while (workload_now_ns() < deadline)
		sorts(compare);
	return 0;
}
#endif
