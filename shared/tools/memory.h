/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.h: returns memory to the system that the process holds and does not use for now. */
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
