/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fd_closer.h: closes descriptors on separate threads, so that the loop's thread does not wait for
 * close(2). Closing a pressure trigger waits for an RCU grace period (psi_trigger_destroy() in
 * kernel/sched/psi.c), about 10 ms each, one after the other. Threads that close descriptors of
 * different files share one grace period. At the end of a process the kernel closes one descriptor
 * after the other, and waits for each. Idle threads do not wake up.
 */
#ifndef TROCAR_CONSUMER_IO_FD_CLOSER_H
#define TROCAR_CONSUMER_IO_FD_CLOSER_H

#include <stddef.h>
#include <stdint.h>

#define CLOSER_THREADS 16

struct fd_closer;

/*
 * Starts the threads (before the system-call filter). The queue has room for `space` descriptors. 0
 * or -errno.
 */
int fd_closer_new(size_t space, struct fd_closer **ret_closer);

/*
 * Takes over `fd` (not negative) and closes it soon, on a thread. Never waits while the queue has
 * space. If the queue is full, or `c` is NULL, closes `fd` at once in the caller's thread.
 */
void fd_closer_put(struct fd_closer *c, int fd);

/* Returns the number of descriptors that were taken over and are not closed yet. */
size_t fd_closer_queued(struct fd_closer *c);

/*
 * Waits at most timeout_ms until all descriptors are closed, then ends the threads and frees
 * everything. NULL is allowed. Returns the number of descriptors left open: the kernel closes them
 * when the process ends.
 */
size_t fd_closer_stop(struct fd_closer *c, uint32_t timeout_ms);

#endif
