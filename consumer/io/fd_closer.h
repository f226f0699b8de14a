/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fd_closer.h: closes descriptors off the loop's thread. Closing a pressure trigger waits for a
 * grace period of RCU (psi_trigger_destroy() in kernel/sched/psi.c): about 10 ms each, one after
 * the other. Several threads share a grace period as long as their files differ, and the end of a
 * process does not: it closes one by one. Idle threads do not wake.
 */
#ifndef TROCAR_CONSUMER_IO_FD_CLOSER_H
#define TROCAR_CONSUMER_IO_FD_CLOSER_H

#include <stddef.h>
#include <stdint.h>

#define CLOSER_THREADS 16

struct fd_closer;

/* Starts the threads (before the system-call filter); room for `space` descriptors. 0 or -errno. */
int fd_closer_new(size_t space, struct fd_closer **ret_closer);

/*
 * Takes `fd` over (not negative) and closes it soon. Never waits while there is room; without room,
 * or without a closer (NULL), it is closed here and now.
 */
void fd_closer_put(struct fd_closer *c, int fd);

/* Descriptors taken over and not closed yet. */
size_t fd_closer_queued(struct fd_closer *c);

/*
 * Waits at most timeout_ms until all are closed, then ends the threads and frees everything; NULL
 * is allowed. Returns how many it left open: the end of the process closes them.
 */
size_t fd_closer_stop(struct fd_closer *c, uint32_t timeout_ms);

#endif
