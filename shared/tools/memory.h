/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.h: gives memory back to the system that a process holds and does not use for now. */
#ifndef TROCAR_SHARED_TOOLS_MEMORY_H
#define TROCAR_SHARED_TOOLS_MEMORY_H

#include <stddef.h>

/*
 * Returns the free memory of malloc(3) to the kernel, and the pages of programs and libraries that
 * are not writable (MADV_DONTNEED of madvise(2)): the kernel maps one again from its cache when it
 * is next used. Of most of that code only the start of a process makes use.
 */
void memory_give_back(void);

/*
 * Has malloc(3) keep one arena for all threads (M_ARENA_MAX of mallopt(3)): what one thread frees
 * another can use, and memory_trim gives it back as a whole. Call before threads begin.
 */
void memory_share_arena(void);

/* Returns only the free memory of malloc(3). Threads that allocate wait for it: some ms. */
void memory_trim(void);

/*
 * Gives back the whole pages of `bytes` bytes of malloc(3) memory at `start`, with content that is
 * not needed: they read as zeros from then on.
 */
void memory_drop(void *start, size_t bytes);

#endif
