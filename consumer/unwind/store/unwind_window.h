/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_window.h: maps a part of a large map of the kernel side for a short time. All pages of a
 * mapped BPF array count as resident from the start (remap_vmalloc_range in kernel/bpf/arraymap.c),
 * so the consumer does not keep tens of megabytes mapped.
 */
#ifndef TROCAR_CONSUMER_UNWIND_STORE_UNWIND_WINDOW_H
#define TROCAR_CONSUMER_UNWIND_STORE_UNWIND_WINDOW_H

#include <stddef.h>
#include <stdint.h>

struct unwind_window {
	void *at;    /* the first byte of the part */
	void *pages; /* NULL: it is not open */
	size_t bytes;
};

/*
 * Maps `bytes` bytes, at least one, from `offset` on, read-write. Returns 0 or -errno of mmap(2).
 * Close with unwind_window_close, which does nothing for a window that was never opened.
 */
int unwind_window_open(int fd, uint64_t offset, size_t bytes, struct unwind_window *ret_window);
void unwind_window_close(struct unwind_window *w);

#endif
