/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.h: returns memory to the system that the process holds and does not use for now, or keeps
 * it.
 */
#ifndef TROCAR_SHARED_TOOLS_MEMORY_H
#define TROCAR_SHARED_TOOLS_MEMORY_H

#include <stddef.h>

/*
 * Returns the free memory of malloc(3) to the kernel, and the pages of programs and libraries that
 * are not writable (MADV_DONTNEED of madvise(2)): the kernel maps a page again from its cache at
 * its next use. Most of that code is used only at the start of a process.
 */
void memory_give_back(void);

/*
 * Makes malloc(3) use one arena for all threads (M_ARENA_MAX of mallopt(3)): another thread can
 * reuse freed memory, and memory_trim returns all of it. Call it before the first thread is
 * created.
 */
void memory_share_arena(void);

/*
 * For a short-lived process that frees large blocks and allocates others: malloc(3) has one heap,
 * keeps what is freed, and uses large pages (MADV_HUGEPAGE of madvise(2)) for the first heap_bytes
 * (at most 1 GiB), because the first use of a page costs more than reading it full. Call it before
 * the first thread is created. Without large pages it is only slower.
 */
void memory_keep(size_t heap_bytes);

/*
 * Returns only the free memory of malloc(3) to the kernel. Threads that allocate wait for it, some
 * ms.
 */
void memory_trim(void);

/*
 * Gives back the whole pages of `bytes` bytes of malloc(3) memory at `start`, with content that is
 * not needed: they read as zeros from then on.
 */
void memory_drop(void *start, size_t bytes);

#endif
