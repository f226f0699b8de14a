/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * closer.h: closes descriptors off the loop's thread. Closing a pressure trigger waits for a grace
 * period of RCU (psi_trigger_destroy() in kernel/sched/psi.c): about 10 ms each, one after the
 * other. Several threads share a grace period as long as their files differ, and the end of a
 * process does not: it closes one by one. Idle threads do not wake.
 */
#ifndef TROCAR_CONSUMER_CLOSER_H
#define TROCAR_CONSUMER_CLOSER_H

#include <stddef.h>
#include <stdint.h>

#define CLOSER_THREADS 16

struct closer;

/* Starts the threads (before the system-call filter); room for `space` descriptors. 0 or -errno. */
int closer_new(size_t space, struct closer **ret_closer);

/*
 * Takes `fd` over (not negative) and closes it soon. Never waits while there is room; without room,
 * or without a closer (NULL), it is closed here and now.
 */
void closer_put(struct closer *c, int fd);

/* Descriptors taken over and not closed yet. */
size_t closer_queued(struct closer *c);

/*
 * Waits at most timeout_ms until all are closed, then ends the threads and frees everything; NULL
 * is allowed. Returns how many it left open: the end of the process closes them.
 */
size_t closer_stop(struct closer *c, uint32_t timeout_ms);

#endif
